"""The experiments behind each notebook: plain functions that compute, and plain functions that draw."""
