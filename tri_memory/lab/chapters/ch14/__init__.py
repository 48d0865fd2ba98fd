"""Chapter 14: how much of which layer goes into the prompt, and what the prompt says about itself afterwards."""
