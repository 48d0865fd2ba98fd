"""What the longer commands of `tri-memory` do, apart from reading arguments and printing."""
