"""What every room may use: paths, processes, tracebacks, tested versions."""
