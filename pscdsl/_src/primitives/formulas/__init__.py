"""Special functions, each written once: NumPy computes a formula, StableHLO is emitted from it.

Accurate to a few units in the last place in f32 and f64; half precisions are computed in f32.
"""
