"""Speed, measured side by side. Run ``make bench``, or ``python -m benchmarks``."""
