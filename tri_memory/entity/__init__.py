"""Which case, which device, which person: ids out of text, how they hang together, and the user's records."""
