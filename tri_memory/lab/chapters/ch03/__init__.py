"""Chapter 03: when to fold old turns into a summary, which, and what survives it."""
