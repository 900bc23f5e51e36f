"""Driftline inside other libraries: each of these rooms needs its extra."""
