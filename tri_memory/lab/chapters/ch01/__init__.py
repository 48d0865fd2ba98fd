"""Chapter 01: what a session is, what its window costs, and how far back people refer."""
