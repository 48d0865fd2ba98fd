"""Chapter 02: why messages vanish when several writers share a session."""
