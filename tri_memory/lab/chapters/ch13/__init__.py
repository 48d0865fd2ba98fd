"""Chapter 13: what must not be kept, and how to show that it is gone."""
