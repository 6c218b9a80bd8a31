"""Smooth functions at points where the formulas of their derivatives divide by zero."""

from __future__ import annotations

from tests.derivatives.subject import subject

ZEROS = {"x": [0.0, -1.5, 2.0]}
SUBJECTS = [
    *[
        subject(code, x="3", values=ZEROS)
        for code in (
            "x ** 2; x ** 3; x ** 4; x ** 1; x ** 0; np.power(x, 2) * x; np.square(x); x ** 2.0; "
            "np.sinc(x); np.prod(x); np.cumprod(x); np.cumprod(x[::-1]); x * np.sin(x); np.sum(x); "
            "np.tanh(x); np.arctan(x); np.log1p(x * x); np.expm1(x); np.sinh(x); np.arcsinh(x); "
            "np.sqrt(1 + x * x); np.exp(-x * x); 1 / (1 + x ** 2); np.var(x); np.sin(x) ** 2; "
            "np.logaddexp(x, 0); np.logaddexp(x, -x); np.logaddexp(x, x); np.polyval(x, 0.5)"
        ).split("; ")
    ],
    *[
        subject(code, x="4", values={"x": [0.0, 3.0, 0.0, -2.0]})
        for code in ("np.prod(x)", "np.cumprod(x)", "x[:2].prod() + x[1:].prod()")
    ],
    subject("np.prod(x, axis=0)", x="2 3", values={"x": [[0.0, 1.0, 0.0], [0.0, 0.0, 2.0]]}),
    subject("np.prod(x, axis=1)", x="2 3", values={"x": [[0.0, 1.0, 0.0], [0.0, 0.0, 2.0]]}),
    subject("np.cumprod(x, axis=0)", x="3 2", values={"x": [[1.0, 0.0], [0.0, 2.0], [0.0, 3.0]]}),
    subject("x ** y", x="3", y="", values={"x": [2.0, 1.0, 0.5], "y": 0.0}),
    subject("x ** 2 * y ** 3", x="2", y="2", values={"x": [0.0, 1.0], "y": [0.0, 0.0]}),
    subject("np.arctan2(x, y)", x="4", y="4", values={"x": [0.0, 1, -1, 1], "y": [1.0, 0, 0, -1]}),
    subject("np.hypot(x, y)", x="4", y="4", values={"x": [0.0, 1, 2, 2], "y": [1.0, 0, 2, -2]}),
    subject("x / y", x="2", y="2", values={"x": [0.0, 0.0]}),
    subject("np.where(x == 0, 1.0, np.sin(x) / np.where(x == 0, 1.0, x))", x="2", low=0.5),
    subject("x * x", x='c128["2"]', values={"x": [0, 1 + 2j]}),
    subject("np.prod(x)", x='c128["3"]', values={"x": [0, 1 + 2j, 2]}),
    subject("x ** 2", x='c128["2"]', values={"x": [0, 1j]}),
    subject("np.abs(x) ** 2", x='c128["2"]', values={"x": [3 + 4j, 1j]}),
    subject("(x * np.conj(x)).real", x='c128["2"]', values={"x": [0, 1j]}),
    # Saturated and far away.
    subject("np.tanh(x)", x="2", values={"x": [300.0, -300.0]}),
    subject("np.logaddexp(x, y)", x="2", y="2", values={"x": [800.0, -900.0], "y": [0.0, 1.0]}),
    subject("np.log1p(np.exp(x))", x="2", values={"x": [-300.0, 30.0]}),
]
