"""A race: the same rows in the same order for Driftline and for other libraries."""
