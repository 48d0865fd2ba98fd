"""Chapter 05: sessions in Redis, which outlive the process: keys, life time, commits, crashes."""
