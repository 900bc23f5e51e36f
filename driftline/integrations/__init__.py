"""Driftline inside other libraries: each of these packages needs its extra."""
