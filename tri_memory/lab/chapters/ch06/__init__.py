"""Chapter 06: what is known of a user, one row a key, in memory and in Postgres."""
