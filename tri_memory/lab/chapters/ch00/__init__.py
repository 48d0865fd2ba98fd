"""Chapter 00: an agent that forgets, and the three layers that cure three kinds of forgetting."""
