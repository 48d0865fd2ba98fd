"""What notebook 10 shows: which memories deserve the prompt, and how far a threshold can tell."""
