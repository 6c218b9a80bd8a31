"""`np.linalg`: matrices stand in the last two axes, and leading axes are gone through.

Dtypes are f32, f64, c64 and c128; integers are taken as `np.exp` takes them.  What fails when the
program runs (a singular matrix, one that is not positive definite) gives NaN.
"""

from pscdsl.numpy.linear_algebra import (
    factorisations,
    least_squares,
    norms,
    products,
    systems,
)

__all__ = ["factorisations", "least_squares", "norms", "products", "systems"]
