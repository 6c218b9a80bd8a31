"""Warnings about typed programs: indices that leave their axis, numerics, performance.

Everything here reads a finished program and never changes it.  `warnings` in `findings` is the
entry; the ranges of integers are in `analysis/ranges`, the rules here match shapes of programs.
"""
