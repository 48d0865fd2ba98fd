"""Chapter 12: one truth and a cache before it, every order in which they are written and read, and who may ask."""
