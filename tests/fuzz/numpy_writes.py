"""Random programs of plain NumPy that write to their arguments, and call kernels that do.

`generate(seed)` is the text of a module whose `main` declares some of its parameters in `writes`:
after a call, the arguments have to hold what they hold under NumPy.  Some programs have kernels of
the module that write to arguments, which `main` calls with arrays, views, and its own parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.numpy_programs import HEAD, PARAMETERS, Program
from tests.fuzz.numpy_values import Array, less

BODIES = (
    "p += r",
    "p[0] = r[-1]",
    "p[1:] = r[:-1]",
    "p[::-1] = p.copy()",
    "p *= 2.0",
    "np.add(p, r, out=p)",
    "p.sort()",
    "r = r + p\n    p[:] = r",
    "for i in range(len(p)):\n        p[i] = p[i - 1] + r[i]",
    "for i, e in enumerate(r):\n        if e > 1.0:\n            p[i] += e",
    "if r[0] > 0.0:\n        p[0] = 5.0\n    else:\n        p += 1.0",
    "q = p[::-1]\n    q[0] = r[0]\n    q += 1.0",
    "q = p\n    p = p + 1.0\n    p[0] = 4.0\n    q[-1] = p[0]",
    "while p[0] < 3.0:\n        p += 1.0",
)
RETURNS = ("", "", "return p.sum()", "return p", "return r", "return p[::-1]", "return p + r")
EARLIER = "if r[0] > 2.0:\n        return p.sum()"


def generate(seed: int, shared: bool = False) -> str:
    """The text of a program; if `shared`, it often writes to what it has not declared."""
    return Writing(seed, shared).text()


class Writing(Program):
    """Writes a program that declares writes."""

    def __init__(self, seed: int, shared: bool) -> None:
        super().__init__(seed, shared)
        self.declared: list[str] = []
        self.kernels: list[tuple[str, int]] = []
        """Kernels that write, and how many of their two vectors."""

    def text(self) -> str:
        """The module."""
        self.module()
        for _ in range(self.rng.choice((0, 1, 1, 2))):
            self.kernel()
        declared, _, body = self.main()
        decorator = f"@psc.kernel(writes={named(self.declared)})"
        parts = [HEAD, *self.parts, f"{decorator}\ndef main({declared}):\n{body}\n"]
        return "\n\n".join(part.rstrip("\n") + "\n" for part in parts)

    def kernel(self) -> None:
        """A kernel of the module that writes to one or both of its arguments."""
        rng, name = self.rng, self.name("k")
        lines: list[str] = rng.sample(BODIES, rng.choice((1, 1, 2)))
        both = self.chance(0.25)
        if both:
            lines.append(rng.choice(("r[0] = p[-1]", "r -= p", "p, r = r, p\n    p[0] = 2.0")))
        result = rng.choice(RETURNS)
        if result == "return p.sum()" and self.chance(0.5):
            lines.insert(rng.randrange(len(lines) + 1), EARLIER)
        lines += [result] if result else []
        writes = named(["p", "r"] if both else ["p"])
        head = f'@psc.kernel(writes={writes})\ndef {name}(p: f64["l"], r: f64["l"]):'
        self.parts.append(head + "".join(f"\n    {line}" for line in lines))
        self.kernels.append((name, 2 if both else 1))

    def parameters(self) -> list[str]:
        """The parameters, some of which are declared, and may be written."""
        names = super().parameters()
        arrays = [name for name in names if PARAMETERS.get(name, ("", ()))[1] and name != "c"]
        self.declared = [name for name in arrays if self.chance(0.6)] or ["x"]
        for each in self.scope.arrays:
            each.own = each.own or each.name in self.declared
        return names

    def enable(self) -> None:
        """Choose statements: calls of kernels, too."""
        super().enable()
        if self.kernels:
            self.enabled += [self.call_writing] * self.rng.choice((2, 4, 9))

    def start(self, of: Array) -> str:
        """A new array, or a parameter by another name."""
        return of.name if of.own and self.chance(0.15) else super().start(of)

    def call_writing(self) -> bool:
        """A call of a kernel that writes."""
        name, count = self.rng.choice(self.kernels)
        first = self.target(("n",) if self.chance(0.7) else (less("n"),))
        if first is None:
            return False
        text, shape = first
        second = self.target(shape) if count == 2 else None
        if count == 2 and second is None:
            return False
        other = second[0] if second else self.bounded("f64", shape)
        arguments = f"{text}, {other}" if self.chance(0.8) else f"r={other}, p={text}"
        if self.nested or self.chance(0.7):
            return self.line(f"{name}({arguments})")
        return self.line(f"{self.name('uv')} = {name}({arguments})")

    def target(self, shape: Sequence[str]) -> tuple[str, tuple[str, ...]] | None:
        """An array of a shape that may be passed to be written, or a part of one."""
        options: list[str] = []
        for each in self.scope.arrays:
            if each.dtype != "f64" or not each.own or "?" in each.shape:
                continue
            if each.shape == tuple(shape):
                options += [each.name] * 3 + [f"{each.name}[::-1]", f"{each.name}[:]"]
            for _ in range(3):
                text, size = self.part(each) or ("", ())
                if size == tuple(shape):
                    options.append(text)
        return (self.rng.choice(options), tuple(shape)) if options else None


def named(names: Sequence[str]) -> str:
    """The names as an option has them."""
    return f'"{names[0]}"' if len(names) == 1 else str(tuple(names)).replace("'", '"')
