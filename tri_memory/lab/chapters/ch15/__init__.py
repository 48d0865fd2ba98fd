"""What notebook 15 shows: how to find out whether a memory works, and how easily a number says that it does."""
