"""Sums, products, extremes, moments, running totals, and what is sorted."""

from __future__ import annotations

from tests.derivatives.subject import subject

AXES = ("", "axis=0", "axis=-1", "axis=(0, 2)", "axis=1, keepdims=True", "keepdims=True")
SUBJECTS = [
    *[
        subject(f"np.{name}(x{', ' * bool(axes)}{axes}) * x", x="m 3 2")
        for name in ("sum", "mean", "prod", "max", "min")
        for axes in ("keepdims=True", "axis=1, keepdims=True", "axis=(0, 2), keepdims=True")
    ],
    *[
        subject(f"np.{name}(x{', ' * bool(axes)}{axes})", x="n m 2")
        for name in ("sum", "mean", "prod", "max", "min", "var", "std", "ptp")
        for axes in AXES
        if not (name == "ptp" and "(" in axes)
    ],
    subject("np.var(x, axis=0, ddof=1)", x="n m", where="n >= 2"),
    subject("np.std(x, axis=-1, ddof=1, keepdims=True) * x", x="2 n", where="n >= 2"),
    subject("np.std(x) ** 2 - np.var(x) + x.mean()", x="n m"),
    subject("np.average(x, axis=0, weights=y)", x="n m", y="n"),
    subject("np.sum(x, initial=3.0) * x", x="n"),
    subject("np.max(x, axis=0, initial=1.0)", x="n m"),
    subject("x.sum() * x.max() + x.prod()", x="n"),
    subject("np.prod(x, axis=0)", x="n m", low=-1.5),
    subject("np.cumsum(x)", x="n m"),
    subject("np.cumsum(x, axis=0) * y", x="n m", y="m"),
    subject("np.cumsum(x, axis=-1) ** 2", x="n m"),
    subject("np.cumprod(x, axis=0)", x="k m"),
    subject("np.cumprod(x)", x="k", low=-1.5),
    subject("np.multiply.accumulate(x, axis=1) * x", x="n m"),
    subject("np.maximum.accumulate(x) * x", x="k"),
    subject("np.minimum.accumulate(x, axis=1)", x="n k"),
    subject("np.add.reduce(x, axis=1)", x="n m"),
    subject("np.diff(x)", x="n m", where="m >= 2"),
    subject("np.diff(x, n=2, axis=0) ** 2", x="k m", where="k >= 3"),
    subject("np.ediff1d(x) * 2", x="n", where="n >= 2"),
    subject("np.gradient(x)", x="k", where="k >= 3"),
    subject("np.trapezoid(x, dx=0.5)", x="n m", where="m >= 2"),
    subject("np.trapezoid(y, x)", x="n", y="n", where="n >= 2"),
    subject("np.log(np.sum(np.exp(x), axis=-1))", x="n m"),
    subject(
        """
def f(x):
    top = np.max(x, axis=-1, keepdims=True)
    return np.log(np.sum(np.exp(x - top), axis=-1)) + top[..., 0]
""",
        x="n k",
        low=-1.5,
    ),
    subject("np.exp(x) / np.sum(np.exp(x), axis=0)", x="n m"),
    subject("np.logaddexp(x[0], x[-1])", x="n m"),
    subject("np.sqrt(np.sum(x * x, axis=1))", x="n m"),
    subject("np.sum(np.abs(x) ** 3) ** (1 / 3)", x="n", low=-1.5),
    subject("np.max(np.abs(x), axis=0)", x="n m", low=-1.5),
    subject("np.trace(x) * x", x="n n"),
    subject("np.trace(x, offset=1)", x="n k", where="n >= 2"),
    # Order.
    subject("np.sort(x)", x="n k"),
    subject("np.sort(x, axis=0) * y", x="n m", y="m"),
    subject("np.sort(x, axis=None) ** 2", x="n m"),
    subject("np.sort(x)[::-1][1] * x", x="n", where="n >= 2"),
    subject("x[np.argsort(x)] * y", x="n", y="n"),
    subject("np.take_along_axis(y, np.argsort(x, axis=1), axis=1) * x", x="n k", y="n k"),
    subject("x[np.lexsort((y, x))]", x="n", y="n"),
    subject("np.median(x)", x="n"),
    subject("np.median(x, axis=0)", x="k m"),
    subject("np.median(x, axis=(0, 1), keepdims=True) * x", x="n m"),
    subject("np.quantile(x, 0.3)", x="k"),
    subject("np.quantile(x, [0.1, 0.75], axis=1)", x="n k"),
    subject("np.quantile(x, q) * x[0]", x="k", q="", low=0.41, high=0.65),
    subject("np.percentile(x, 60, axis=0)", x="k m"),
    subject("np.partition(x, 1)[0:2] ** 2", x="4"),
    subject("psc.top_k(x, 2)[0] * y", x="n 4", y="2"),
    subject("np.max(x) - np.sort(x)[-1] * np.min(x)", x="n"),
    subject("np.interp(y, np.array([0.0, 0.5, 1.1, 2.0]), x)", x="4", y="n"),
    subject("np.interp(1.0, x, y)", x="3", y="3", values={"x": [0.2, 0.9, 1.6]}),
    subject("np.unwrap(x) * x", x="n"),
    subject("np.nansum(x) * x", x="n"),
    subject("np.nanmean(x, axis=0)", x="n m"),
    subject("np.cov(x)", x="2 k", where="k >= 2"),
    subject("np.corrcoef(x, y)", x="k", y="k", where="k >= 2"),
]
