"""Chapter 08: recall over many rows in Postgres, where an index that all users share can leave one of them short."""
