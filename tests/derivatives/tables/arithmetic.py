"""Operators and elementwise functions: operands of all ranks, choices, powers, bounds."""

from __future__ import annotations

from tests.derivatives.subject import subject

OPERATORS = ("+", "-", "*", "/", "**")
SHAPES = (
    ("", ""),
    ("n", ""),
    ("", "n"),
    ("n", "n"),
    ("n m", "m"),
    ("m", "n m"),
    ("n 1", "1 m"),
    ("1", "n"),
    ("n 1 k", "m k"),
    ("1 m", "k n 1"),
)
SUBJECTS = [
    *[subject(f"x {sign} y", x=x, y=y) for sign in OPERATORS for x, y in SHAPES],
    # Python scalars and constants on either side.
    subject("2 * x - 1", x="n"),
    subject("1 / x + 2 / (1 + x)", x="n"),
    subject("2.0 ** x", x="n"),
    subject("x ** 3", x="n"),
    subject("x ** 2.5", x="n"),
    subject("x ** -1", x="n"),
    subject("x ** 0.5", x="n"),
    subject("x ** 2", x="n", low=-1.5),
    subject("x ** 3", x="n", low=-1.5),
    subject("x ** -2", x="n", low=-1.5, high=1.4),
    subject("x ** 0", x="n", low=-1.5),
    subject("x ** 1", x="n", low=-1.5),
    subject("np.power(x, 4)", x="n", low=-1.5),
    subject("np.float_power(x, y)", x="n", y="n"),
    subject("x % y", x="n", y="n", low=1.1, high=1.9),
    subject("np.mod(x, 0.7)", x="n", low=0.75, high=1.35),
    subject("np.fmod(x, y) * x", x="n", y="n", low=1.1, high=1.9),
    subject("np.array([1.0, 2.0, 4.0]) * x", x="m 3"),
    subject("x * x.shape[0] + len(x)", x="n"),
    # The same array as both operands, and repeatedly.
    subject("x + x", x="n"),
    subject("x - x", x="n"),
    subject("x * x * x", x="n"),
    subject("x / x", x="n"),
    subject("x ** x", x="n"),
    subject("(x * y) * (x + y) / (x * x)", x="n", y=""),
    # Functions.
    *[
        subject(f"np.{name}(x)", x="n", low=-1.5)
        for name in (
            "negative positive abs square exp exp2 expm1 sin cos tanh sinh cosh arctan arcsinh "
            "sign cbrt deg2rad rad2deg sinc"
        ).split()
    ],
    *[
        subject(f"np.{name}(x)", x="n")
        for name in "sqrt log log2 log10 log1p reciprocal tan".split()
    ],
    *[subject(f"np.{name}(x)", x="n", low=0.1, high=0.9) for name in ("arcsin", "arccos")],
    subject("np.arctanh(x)", x="n", low=-0.8, high=0.8),
    subject("np.arccosh(x)", x="n", low=1.3, high=2.9),
    *[subject(f"np.{name}(x) * x", x="n") for name in ("floor", "ceil", "rint", "trunc")],
    *[
        subject(f"np.{name}(x, y)", x=x, y=y, low=-1.5)
        for name in ("arctan2", "hypot", "logaddexp", "maximum", "minimum", "fmax", "fmin")
        for x, y in (("n", "n"), ("n m", ""), ("1 m", "n 1"))
    ],
    subject("np.logaddexp2(x, y)", x="n", y=""),
    subject("np.copysign(x, y)", x="n", y="n", low=-1.5),
    subject("np.heaviside(x, 0.5) * x", x="n", low=-1.5),
    subject("np.sin(np.cos(x) * y) + np.exp(-x * y)", x="n", y="n"),
    subject("np.log(1 + np.exp(x))", x="n", low=-1.5),
    subject("1 / (1 + np.exp(-x))", x="n", low=-1.5),
    subject("np.sqrt(x ** 2 + y ** 2)", x="n", y="n"),
    subject("np.nan_to_num(x) * x", x="n"),
    # Choices.
    subject("np.where(x > 1, x * x, 3 * x)", x="n m"),
    subject("np.where(p, x, y * x)", p='bool_["m"]', x="n m", y="n 1", values={"p": [1, 0]}),
    subject("np.where(x > y, x, 2 * y)", x="n", y=""),
    subject("np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), x)", x="n", low=-1.5),
    subject("np.where(x < 1, 0.0, x * x)", x="n"),
    subject("np.clip(x, 0.5, 1.2) * x", x="n"),
    subject("np.clip(x, y, 1.3)", x="n", y="", low=0.2),
    subject("np.clip(x, None, y)", x="n", y="n"),
    subject("np.minimum(np.maximum(x, 0.5), y)", x="n m", y="m"),
    subject("np.select([x > 1.2, x > 0.8], [x * x, 2 * x], x)", x="n"),
    subject("np.choose(i, [x, 2 * x, x * y])", i='i32["n"]', x="n", y="n", values={"i": [2, 0, 1]}),
    subject("np.maximum(x, 0) * np.abs(x - 1)", x="n", low=-1.5),
    # Casts there and back keep what they keep.
    subject("x.astype(np.complex128).real * x", x="n"),
    subject("(x > 1).astype(np.float64) * x", x="n"),
    subject("x.astype(np.int32).astype(np.float64) * x", x="n"),
]
