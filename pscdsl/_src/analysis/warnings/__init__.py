"""Warnings about typed programs: indices that leave their axis, numerics, performance.

Everything here reads a finished program and never changes it.  `warnings` in `findings` is the
entry; `intervals` bounds integers, the other modules match shapes of programs.
"""
