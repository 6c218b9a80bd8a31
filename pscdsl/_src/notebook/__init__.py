"""Notebooks: results, records, kernels and programs as HTML, and the magic `%psc`."""
