"""Chapter 16: fifteen faults of real systems, each in a small broken version beside the package's own part."""
