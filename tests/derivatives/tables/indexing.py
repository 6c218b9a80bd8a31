"""Reading and writing at places, known and computed."""

from __future__ import annotations

from tests.derivatives.subject import subject

ROWS = {"i": [0, 2, -1, 2]}
TABLE = {"j": [[1, 0], [1, 1]]}
MODES = ("set", "add", "multiply", "maximum", "minimum")
SUBJECTS = [
    # Integers, slices, new axes, the ellipsis.
    *[
        subject(f"x[{key}] * x[{key}]", x="3 5 4")
        for key in (
            "0, 1, 2; -1; 1, ..., -2; ...; 1:; :-1; ::2; 1:3; ::-1; :, ::-2; 2:0:-1; None; "
            "..., None; 0, None, 1:, None; :, None, :, ::3; -2:, ..., 1; 0:1, :, -3:-1; "
            "..., ::-1; 1, :, None, 2"
        ).split("; ")
    ],
    subject("x[1:] - x[:-1]", x="n m", where="n >= 2"),
    subject("x[::2]", x="n m"),
    subject("x[::-3] * x[0]", x="k m"),
    subject("x[1:-1] * 2 + x[2:] * x[:-2]", x="k", where="k >= 3"),
    subject("x[x.shape[0] // 2:]", x="k"),
    subject("x[-1] ** 2 + x[0]", x="n m"),
    subject("x.T[0] * x[:, 0]", x="n m"),
    # Integer arrays, with repeats, with slices between, broadcast against each other.
    subject("x[i]", x="n", i='i32["k"]', values=ROWS),
    subject("x[i] * x[i]", x="n m", i='i32["k"]', values=ROWS),
    subject("x[:, i]", x="m n", i='i32["k"]', values=ROWS),
    subject("x[i, 0]", x="n m", i='i32["k"]', values=ROWS),
    subject("x[i, :, i]", x="3 m 3", i='i32["k"]', values=ROWS),
    subject("x[j]", x="n", j='i32["2 2"]', values=TABLE),
    subject("x[j, None, ::-1]", x="n m", j='i32["2 2"]', values=TABLE),
    subject("x[j[:, :1], j[0]]", x="n 2", j='i32["2 2"]', values=TABLE),
    subject("x[[0, 0, 2]]", x="3 m"),
    subject("x[np.array([[0], [1]]), [1, 1, 0]]", x="2 2"),
    subject("x[i][1:] * x[0]", x="n m", i='i32["k"]', values=ROWS),
    subject("x[np.arange(x.shape[0]), i]", x="k 3", i='i32["k"]', values=ROWS),
    subject("x[s]", x="n m", s="i32", values={"s": 1}),
    subject("x[s, -s]", x="n m", s="i32", values={"s": 1}),
    subject("np.take(x, i, axis=1)", x="m n", i='i32["k"]', values=ROWS),
    subject("np.take(x, i)", x="n", i='i32["k"]', values=ROWS),
    subject("np.take(x, 1, axis=-1)", x="n 2"),
    subject("np.take(x, i, mode='wrap')", x="n", i='i32["4"]', values={"i": [5, -4, 0, 7]}),
    subject("np.take(x, i, mode='clip')", x="n", i='i32["4"]', values={"i": [5, -4, 0, 7]}),
    subject(
        "np.take_along_axis(x, j, axis=0)", x="n 2", j='i32["2 2"]', values={"j": [[2, 0], [1, 0]]}
    ),
    subject("np.take_along_axis(x, j, axis=1) * x[:2]", x="2 2", j='i32["2 2"]', values=TABLE),
    subject("x[x[:, 0].argmax()]", x="n m"),
    subject("x.ravel()[1]", x="n 2"),
    # Masks, through np.where and products.
    subject("np.where(p, x, 0).sum(axis=0)", p='bool_["n"]', x="m n", values={"p": [1, 0, 1]}),
    subject("x * p.astype(np.float64)", p='bool_["n"]', x="m n", values={"p": [1, 0, 1]}),
    subject("psc.update(x, p, 0.5) * x", p='bool_["n"]', x="n", values={"p": [1, 0, 1]}),
    subject("psc.update(x, x > 1, y)", x="n", y=""),
    # Functional updates.
    *[subject(f'psc.update(x, 1, y, "{mode}")', x="2 m", y="m") for mode in MODES],
    *[
        subject(f'psc.update(x, (..., slice(None, None, 2)), y, "{mode}")', x="n 4", y="n 2")
        for mode in MODES
    ],
    *[
        subject(
            f'psc.update(x, i, y, "{mode}")',
            x="n m",
            i='i32["2"]',
            y="2 m",
            values={"i": [2, 0]},
        )
        for mode in MODES
    ],
    *[
        subject(f'psc.update(x, i, y, "{mode}")', x="n", i='i32["k"]', y="k", values=ROWS)
        for mode in ("add", "maximum", "minimum")
    ],
    subject("psc.update(x, (i, i), y, 'add')", x="3 n", i='i32["k"]', y="", values=ROWS),
    subject("psc.update(x, 0, 2.0) * x", x="n m"),
    subject("psc.update(x, slice(1, None), x[:-1] * x[1:])", x="n m", where="n >= 2"),
    subject("psc.update(psc.update(x, 0, y), 0, y * y) * x", x="n", y=""),
    subject("psc.update(np.zeros(3), i, x, 'add') ** 2", i='i32["k"]', x="k", values=ROWS),
    subject("psc.update(x, s, y, 'multiply') * x", x="n", y="", s="i32", values={"s": 2}),
    subject("psc.dynamic_slice(x, (s, 0), (2, 2))", x="4 2", s="i32", values={"s": 1}),
    subject("psc.dynamic_slice(x, (s,), (2,)) * x[:2]", x="4", s="i32", values={"s": 9}),
    subject("psc.dynamic_update(x, y, (s, 1)) * x", x="4 3", y="2 2", s="i32", values={"s": 1}),
    subject("psc.dynamic_update(x, x[:2] * y, (s,))", x="4", y="", s="i32", values={"s": -9}),
]
