"""Long runs of random programs, all by one command: `python -m tests.campaign NAME`."""
