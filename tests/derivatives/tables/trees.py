"""Functions of trees: tuples, records of all kinds, maps, vectors, `None`, static fields."""

from __future__ import annotations

from tests.derivatives.subject import Subject, subject

CLASSES = """
class Layer(psc.Record):
    w: f64["n n"]
    b: f64["n"]

class Pair(NamedTuple):
    first: f64["n"]
    second: tuple[f64, f64["n"]]

@dataclass(frozen=True)
class Net:
    layers: tuple[Layer, Layer]
    scale: f64

class Rotation(psc.Record):
    cos: f64
    sin: f64

    def apply(self, x):
        return x[0] * self.cos - x[1] * self.sin, x[0] * self.sin + x[1] * self.cos

    @property
    def size(self):
        return self.cos ** 2 + self.sin ** 2
"""


def of(code: str, **params: str) -> Subject:
    """A function whose parameters are of the classes above."""
    return Subject(CLASSES + code, params)


PAIRS = "tuple[f64, tuple[f64['n'], f64['n']]]".replace("'", '"')
SUBJECTS = [
    subject("p[0] * p[1][0] + p[1][1]", p=PAIRS),
    subject("(p[1][0] * x, (p[0] * x, p[1][1]))", p=PAIRS, x=""),
    subject("p[0] * q[1][0] + np.sum(p[1][1] * q[1][1]) * q[0]", p=PAIRS, q=PAIRS),
    of("def f(p):\n    return p.first * p.second[0] + p.second[1]\n", p="Pair"),
    of("def f(p, x):\n    return p.first * p.second[0] * x, p.second[1]\n", p="Pair", x=""),
    of(
        "def f(p):\n    first, (a, b) = p\n    return Pair(first * a, (a, b * first)).second\n",
        p="Pair",
    ),
    of("def f(p):\n    return p._replace(first=p.first ** 2).first * p[1][0]\n", p="Pair"),
    of("def f(p, x):\n    return np.stack(p.apply(x)) * p.size\n", p="Rotation", x="2"),
    of(
        """
def f(layer: Layer, x):
    return layer.w @ x + layer.b
""",
        layer="Layer",
        x="n",
    ),
    of(
        """
@psc.kernel
def dense(layer: tuple[f64["o i"], f64["o"]], x: f64["i"]) -> f64["o"]:
    return np.tanh(layer[0] @ x + layer[1])
def f(layer, other, x):
    return dense(other, dense(layer, x))
""",
        layer='tuple[f64["m n"], f64["m"]]',
        other='tuple[f64["k m"], f64["k"]]',
        x="n",
    ),
    subject(
        """
def f(x, y):
    m = pyrsistent.pmap({"a": x, "b": x * y})
    m = m.set("a", m["b"] * m["a"]).update({"c": m["a"]})
    return m["a"] + m["c"] * m["b"], m["b"]
""",
        x="n",
        y="",
        plain=False,
    ),
    subject(
        """
def f(x, y):
    v = pyrsistent.v(x, x * y).append(y * y)
    return v.set(0, v[1])[0] * v[2], v[1]
""",
        x="n",
        y="",
        plain=False,
    ),
    subject(
        """
def f(x, y):
    def step(carry, row):
        d = {"total": carry[0] * row, "last": (row, None)}
        return (d["total"], d["last"][0]), pyrsistent.pmap({"seen": carry[1], "none": None})
    carry, out = psc.scan(step, (y, y), x)
    return carry, out["seen"]
""",
        x="k",
        y="",
        plain=False,
    ),
    of(
        """
def f(net, x):
    for _ in range(2):
        x = np.tanh(net.layers[1].w @ np.tanh(net.layers[0].w @ x) + net.scale)
    return x
""",
        net="Net",
        x="n",
    ),
    subject(
        """
def f(p, x):
    gradient = psc.grad(lambda q: np.sum(q[0] * q[1][0] ** 2 * q[1][1]))(p)
    return gradient[0] * x, gradient[1][0]
""",
        p=PAIRS,
        x="",
        plain=False,
    ),
]
