"""Notebook 09: what should fade, by which law, and what fading costs in recall."""
