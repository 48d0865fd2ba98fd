"""What protects the user: pseudonyms, consent, forgetting for good, and a log of who did what."""
