"""Chapter 04: what a turn costs, and folding by tokens instead of by count."""
