"""Side-by-side measurements; `python -m tests.benchmarks` runs them all."""
