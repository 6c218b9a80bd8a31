"""Control flow: branches, loops with and without a bound, calls, transformations inside."""

from __future__ import annotations

from tests.derivatives.subject import subject

FLAG = {"p": True}
SUBJECTS = [
    # Branches.
    subject("psc.cond(x > 1, lambda x: x * x, lambda x: 3 * x, x)", x="", values={"x": 1.3}),
    subject("psc.cond(x > 1, lambda x: x * x, lambda x: 3 * x, x)", x="", values={"x": 0.7}),
    subject("psc.cond(p, lambda: x * y, lambda: x / y)", p="bool_", x="n", y="", values=FLAG),
    subject("psc.cond(np.sum(x) > 9, lambda: x, lambda: x * np.sum(x))", x="n"),
    subject(
        "psc.cond(p, lambda x: (x, 2.0), lambda x: (2 * x, x[0]), x)[1] * x",
        p="bool_",
        x="n",
        values={"p": False},
    ),
    subject(
        "psc.cond(p, lambda x: x, lambda x: np.ones(x.shape[0], np.float64), x)",
        p="bool_",
        x="n",
        values={"p": False},
    ),
    *[
        subject(
            "psc.switch(i, [lambda x: x, lambda x: x * x, lambda x: 2 * x * y], x)",
            i="i32",
            x="n",
            y="n",
            values={"i": i},
        )
        for i in (0, 1, 2, 7, -3)
    ],
    subject(
        """
def f(x, y):
    def inner(a):
        return psc.cond(a[0] > 1, lambda: a * y, lambda: a + y)
    return psc.cond(y > 0.1, inner, lambda a: a, x * x)
""",
        x="n",
        y="",
    ),
    # Scans.
    subject("psc.scan(lambda c, x: (c * x, c), y, x)", x="k", y=""),
    subject("psc.scan(lambda c, x: (c * x + c, c * x), y, x, reverse=True)", x="k m", y="m"),
    subject("psc.scan(lambda c, _: (np.sin(c * x), c + x), y, length=3)", x="m", y="m"),
    subject("psc.scan(lambda c, x: (c + x, x * x), 0.0, x)[1]", x="k"),
    subject("psc.scan(lambda c, x: (c, x[0] * x[1] * y), 0, (x, x * x))[1]", x="k m", y="m"),
    subject(
        """
def f(w, u, b, xs, h):
    def step(h, x):
        h = np.tanh(w @ h + u @ x + b)
        return h, h
    return psc.scan(step, h, xs)
""",
        w="n n",
        u="n m",
        b="n",
        xs="k m",
        h="n",
    ),
    subject(
        """
def f(x, y):
    def step(carry, a):
        (c, d), i = carry
        return ((c * a + d, c), i + 1), (d * a, i)
    ((c, d), i), (ds, _) = psc.scan(step, ((y, y * y), np.int32(0)), x)
    return c, d * i.astype(np.float64), ds
""",
        x="k",
        y="m",
    ),
    subject(
        """
def f(x, y):
    def outer(c, row):
        def inner(d, a):
            return d * a + c, d
        d, ds = psc.scan(inner, y, row)
        return c + d, np.sum(ds)
    return psc.scan(outer, y, x)
""",
        x="n m",
        y="",
    ),
    subject(
        """
def f(x):
    def step(c, a):
        return psc.cond(a > 1, lambda: c * a, lambda: c + a * a), c
    return psc.scan(step, 0.5, x)
""",
        x="k",
    ),
    subject(
        """
def f(x, i):
    def step(table, at):
        return psc.update(table, at, table[at] * x[at], "add"), table[at]
    return psc.scan(step, x, i)
""",
        x="n",
        i='i32["k"]',
        values={"i": [0, 2, 2, 1]},
    ),
    subject("psc.map(lambda r: r * np.sum(r) * y, x)", x="k m", y="m"),
    subject("psc.map(lambda r: psc.map(lambda a: a * r[0], r), x)", x="k m"),
    subject("psc.map(lambda r: r[0] * r[1], (x, y))", x="k m", y="k"),
    # Loops with counters.
    subject("psc.fori_loop(0, 3, lambda i, c: c * x + y, x)", x="n", y=""),
    subject("psc.fori_loop(0, len(x), lambda i, c: c * x[i] + y, y)", x="n", y=""),
    subject("psc.fori_loop(1, 4, lambda i, c: np.sin(c) * i.astype(np.float64), x)", x="n"),
    subject("psc.fori_loop(0, 0, lambda i, c: c * x, x)", x="n"),
    subject("psc.fori_loop(0, len(x), lambda i, c: psc.update(c, i, c[i] * c[0]), x)", x="k"),
    subject("psc.fori_loop(0, 2, lambda i, c: (c[1], c[0] * c[1]), (x, y))", x="n", y="n"),
    # Loops with a condition and a bound.
    subject("psc.while_loop(lambda c: c < 9, lambda c: c * 2 * x, x, max_steps=20)", x="", low=0.8),
    subject(
        "psc.while_loop(lambda c: np.sum(c) < 40, lambda c: c * 2 + y, x, max_steps=9)",
        x="n",
        y="",
    ),
    subject(
        "psc.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x), "
        "max_steps=3)[1]",
        x="n",
    ),
    subject("psc.while_loop(lambda c: c > 99, lambda c: c * x, x, max_steps=5)", x=""),
    subject(
        """
def f(a, x):
    def step(carry):
        i, x = carry
        return i + 1, (x + a / x) / 2
    return psc.while_loop(lambda c: c[0] < 4, step, (0, x), max_steps=10)[1]
""",
        a="n",
        x="n",
    ),
    subject(
        """
def f(x, y):
    def step(c):
        inner = psc.while_loop(lambda d: d < 2 * c[0], lambda d: d * 1.5, c[1], max_steps=7)
        return c[0] * y + 1, inner
    return psc.while_loop(lambda c: c[0] < 5, step, (x, y), max_steps=6)
""",
        x="",
        y="",
        low=0.9,
    ),
    subject(
        """
def f(x, y):
    def outer(c, a):
        c = psc.while_loop(lambda c: c < 3, lambda c: c * 2 * a, c, max_steps=8)
        return c / 4, c
    return psc.scan(outer, y, x)
""",
        x="k",
        y="",
        low=0.8,
    ),
    # What has no tangent is carried, saved and chosen too: truth values, integers, keys.
    subject(
        """
def f(x, y):
    def step(c):
        i, up, z = c
        return i + 1, np.logical_not(up), psc.cond(up, lambda: z * x, lambda: z + y)
    return psc.while_loop(lambda c: c[0] < 3, step, (0, True, x), max_steps=5)[2]
""",
        x="n",
        y="n",
    ),
    subject(
        """
def f(x, s):
    def step(c):
        i, key, z = c
        key, one = psc.random.split(key)
        return i + 1, key, z * x * psc.random.uniform(one, (), np.float64)
    return psc.while_loop(lambda c: c[0] < 3, step, (0, psc.random.key(s), x), max_steps=5)[2]
""",
        x="",
        s="i32",
        values={"s": 7},
        plain=False,
    ),
    subject(
        """
def f(x, s):
    def step(key, a):
        key, one = psc.random.split(key)
        z = a * psc.random.normal(one, (), np.float64)
        return key, psc.cond(z > 0, lambda: z * z, lambda: z * x[0])
    return psc.scan(step, psc.random.key(s), x)[1]
""",
        x="k",
        s="i32",
        values={"s": 7},
        plain=False,
    ),
    subject(
        """
def f(x, s, p):
    def one(key):
        return x * psc.random.uniform(key, x.shape, np.float64), 2
    def other(key):
        first, second = psc.random.split(key)
        y = psc.random.normal(first, x.shape, np.float64)
        return y * x * x * psc.random.uniform(second, (), np.float64), 3
    return psc.cond(p, one, other, psc.random.key(s))[0]
""",
        x="n",
        s="i32",
        p="bool_",
        values={"s": 7, "p": False},
        plain=False,
    ),
    # Python's own control flow, closures, functions of functions.
    subject("sum(x[i] ** i for i in range(3))", x="3"),
    subject("np.stack([x * i for i in range(1, 4)])", x="n"),
    subject(
        """
def power(x, n):
    return x if n == 1 else x * power(x, n - 1)
def f(x):
    return power(x, 4)
""",
        x="n",
    ),
    subject(
        """
def compose(g, h):
    return lambda x: g(h(x))
def f(x, y):
    scale = lambda a: a * y
    return compose(np.sin, compose(scale, np.exp))(x)
""",
        x="n",
        y="n",
    ),
    # Calls of kernels, at several sizes, nested, in loops.
    subject(
        """
@psc.kernel
def inner(a: f64["p"], b: f64["p"]) -> tuple[f64["p"], f64]:
    return a * b, np.sum(a) * b[0]
def f(x, y):
    one, two = inner(x, y)
    three, four = inner(np.concatenate([x, one]), np.concatenate([y, y]))
    return one * two, three * four
""",
        x="n",
        y="n",
    ),
    subject(
        """
@psc.kernel
def cell(h: f64["p"], x: f64["p"]) -> f64["p"]:
    return np.tanh(h * x + h)
@psc.kernel
def layer(h: f64["p"], xs: f64["t p"]) -> f64["p"]:
    return psc.scan(lambda h, x: (cell(h, x), 0), h, xs)[0]
def f(h, xs):
    return layer(layer(h, xs), xs) * cell(h, h)
""",
        h="n",
        xs="k n",
    ),
    subject(
        """
@psc.kernel
def pick(x: f64["p"], i: i32, flag: bool_) -> tuple[f64["p"], i32]:
    return psc.cond(flag, lambda: x * x[i], lambda: x), i + 1
def f(x, i):
    y, j = pick(x, i, i > 0)
    return pick(y, j, j > 5)[0] * y
""",
        x="n",
        i="i32",
        values={"i": 1},
    ),
    # Transformations inside what is differentiated.
    subject("psc.grad(lambda a: np.sum(np.sin(a * y)))(x)", x="n", y="", plain=False),
    subject("psc.jvp(lambda a: a ** 3, (x,), (y,))[1]", x="n", y="n", plain=False),
    subject("psc.vjp(lambda a: a * y, x)[1](x * x)[0]", x="n", y="n", plain=False),
    subject("psc.linearize(lambda a: a ** 3, x)[1](y)", x="n", y="n", plain=False),
    subject("psc.jacfwd(lambda a: a * a[::-1])(x)", x="n", plain=False),
    subject("psc.jacrev(lambda a: np.outer(a, y))(x)", x="n", y="m", plain=False),
    subject("psc.hessian(lambda a: np.sum(a ** 4) * y)(x)", x="n", y="", plain=False),
    subject("psc.vmap(lambda a: a * np.sum(a) * y)(x)", x="n m", y="m", plain=False),
    subject(
        "psc.vmap(psc.grad(lambda a, b: a ** 2 * b), in_axes=(0, None))(x, y)",
        x="n",
        y="",
        plain=False,
    ),
    subject("psc.vmap(lambda a: a * y, in_axes=1, out_axes=1)(x)", x="n m", y="n", plain=False),
    subject(
        "psc.vmap(lambda a: psc.scan(lambda c, b: (c * b, c), y, a))(x)", x="n k", y="", plain=False
    ),
    subject(
        "psc.scan(lambda c, a: (psc.grad(lambda b: b ** 3)(c) * a, c), y, x)",
        x="k",
        y="",
        plain=False,
    ),
    subject("psc.value_and_grad(lambda a: np.sum(a * a) * y)(x)", x="n", y="", plain=False),
    subject(
        """
def f(x, y):
    value, pull = psc.vjp(lambda a, b: (a * b, a + b), x, y)
    one = pull((x, y))
    two = pull((y, one[0]))
    return one, two, value
""",
        x="n",
        y="n",
        plain=False,
    ),
    subject(
        """
def f(x, y):
    def step(c):
        return c - 0.1 * psc.grad(lambda c: np.sum((c * c - y) ** 2))(c)
    return psc.fori_loop(0, 3, lambda i, c: step(c), x)
""",
        x="n",
        y="n",
        plain=False,
    ),
]
