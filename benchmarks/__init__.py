"""Speed, beside the limit and beside peers. `make bench` prints one table; only ratios within one run mean anything."""
