"""Random chains of operations at awkward sizes and of awkward values, compiled against NumPy."""
