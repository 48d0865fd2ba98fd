"""Chapter 11: cases found by their number, and what a cosine makes of hundreds that are nearly alike."""
