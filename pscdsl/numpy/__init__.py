"""NumPy's vocabulary as kernels see it: what each name means on traced arrays.

Inside these files `numpy` is the real NumPy, used for constants and for what is known while
checking; the meanings are declared with `pscdsl.meanings.function` under NumPy's own names.
"""
