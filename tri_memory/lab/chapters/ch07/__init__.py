"""What notebook 07 shows: sessions found by meaning, what finds them best, and where vectors are blind."""
