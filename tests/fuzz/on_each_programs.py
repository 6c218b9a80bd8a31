"""Random programs of `psc.on_each`, and their meaning under NumPy: one thread for each device.

The threads run the text of the program itself, in step: a device that exchanges values waits for
all others, and gets what they gave.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownLambdaType=false

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Barrier
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias

import numpy as np

from pscdsl._src.frontend.definitions import Definition
from tests.fuzz import reference
from tests.support.kernels_of import kernels_of
from tests.support.threads import on_devices

NDArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]
HEAD = "import numpy as np\nimport pscdsl as psc\nfrom pscdsl import f64\n\n\n"
Shape = Literal["piece", "all", "row", "number"]
"""`m d`, a piece; `n d`, what all have; `d`; and no axis."""


@dataclass(frozen=True)
class Name:
    """A variable of one device's part."""

    text: str
    shape: Shape
    varies: bool


@dataclass(frozen=True)
class OnEach:
    """A program, and where its results are put together."""

    text: str
    shapes: tuple[Shape, ...]
    out_axes: tuple[int | None, ...]

    def definition(self) -> Definition:
        """Its kernel."""
        return kernels_of(self.text)["program"]

    def meaning(self, devices: int, operands: Sequence[NDArray]) -> list[NDArray]:
        """Its results under NumPy: `x` is cut along its first axis, `y` along its second one."""
        x, y, w = operands
        pieces = [
            (*pair, w)
            for pair in zip(np.split(x, devices, 0), np.split(y, devices, 1), strict=True)
        ]
        found = in_step(self.text, pieces)
        results: list[NDArray] = []
        for n, at in enumerate(self.out_axes):
            each = [np.asarray(part[n]) for part in found]
            if at is None:
                assert all(np.array_equal(each[0], x, equal_nan=True) for x in each), (
                    "devices differ"
                )
                results.append(each[0])
            else:
                results.append(np.concatenate(each, at))
        return results


def in_step(text: str, pieces: Sequence[Sequence[NDArray]]) -> list[Any]:
    """The results of `part` of a program on the pieces of all devices."""
    count = len(pieces)
    barrier = Barrier(count, timeout=60)
    given: list[Any] = [None] * count

    def exchanged(device: int, x: Any) -> list[NDArray]:
        given[device] = np.asarray(x)
        barrier.wait()
        found = [*given]
        barrier.wait()
        return found

    def run(device: int) -> Any:
        def total(x: Any, _: str) -> Any:
            first, *others = exchanged(device, x)
            for other in others:
                first = first + other
            return first

        own = SimpleNamespace(
            axis_sum=total,
            axis_gather=lambda x, _, dim=0: np.concatenate(exchanged(device, x), dim),
            axis_shift=lambda x, _, by=1: exchanged(device, x)[(device - by) % count],
            axis_index=lambda _: np.int32(device),
            axis_size=lambda _: count,
            **COMBINATORS,
        )
        names: dict[str, Any] = {"np": np, "psc": own}
        exec(text.removeprefix(HEAD).split("# kernel")[0], names)
        return names["part"](*pieces[device])

    return on_devices(count, barrier, run)


COMBINATORS: dict[str, Callable[..., Any]] = {
    "cond": reference.cond,
    "fori_loop": reference.fori_loop,
    "while_loop": reference.while_loop,
    "scan": reference.scan,
    "vmap": reference.vmap,
    "checkpoint": reference.checkpoint,
}


class Writer:
    """Writes a program; every choice comes from a seed."""

    def __init__(self, rng: random.Random, size: int) -> None:
        self.rng = rng
        self.size = size
        self.lines: list[str] = []
        self.names = [
            Name("x", "piece", True),
            Name("y", "piece", True),
            Name("w", "row", False),
            Name("1.5", "number", False),
        ]

    def program(self) -> OnEach:
        """A program of at most so many statements."""
        self.lines.append("y = y.T")
        statements = (
            *(self.collective,) * 4,
            *(self.elements,) * 2,
            *(self.reduction,) * 2,
            self.along_rows,
            self.branch,
            self.loop,
            self.loop,
        )
        for _ in range(self.rng.randrange(2, self.size + 1)):
            self.rng.choice(statements)()
        chosen = [name for name in self.names[3:] if name.text != "1.5"] or self.names[:1]
        results = self.rng.sample(chosen, min(len(chosen), self.rng.randrange(1, 5)))
        axes: list[int | None] = []
        texts: list[str] = []
        for each in results:
            at: int | None = 0
            if not each.varies and self.rng.random() < 0.8:
                at = None
            elif each.shape == "piece" and self.rng.random() < 0.3:
                at = 1
            is_number = each.shape == "number" and at is not None
            texts.append(f"np.reshape({each.text}, (1,))" if is_number else each.text)
            axes.append(at)
        body = "\n".join(f"    {line}" for line in self.lines)
        text = (
            f"def part(x, y, w):\n{body}\n    return {', '.join(texts)},\n\n\n# kernel\n"
            "@psc.kernel\n"
            'def program(x: f64["n@data d"], y: f64["d n@data"], w: f64["d"]):\n'
            f'    return psc.on_each("data", part, (0, 1, None), ({", ".join(map(str, axes))},))'
            "(x, y, w)\n"
        )
        return OnEach(HEAD + text, tuple([each.shape for each in results]), tuple(axes))

    # Choices.

    def any(self, shape: Shape | None = None, varies: bool | None = None) -> Name | None:
        """A variable of a shape, the last ones more often."""
        found = [
            name
            for name in self.names
            if shape in (None, name.shape) and varies in (None, name.varies)
        ]
        if not found:
            return None
        return self.rng.choice(found[-3:] if self.rng.random() < 0.6 else found)

    def add(self, value: str, shape: Shape, varies: bool) -> None:
        """Give a value a name."""
        name = Name(f"v{len(self.lines)}", shape, varies)
        self.lines.append(f"{name.text} = {value}")
        self.names.append(name)

    def some(self, *options: str) -> str:
        """One of some texts."""
        return self.rng.choice(options)

    # Statements.

    def elements(self) -> None:
        """A function of elements."""
        a = self.any()
        assert a is not None
        if self.rng.random() < 0.3:
            self.add(
                self.some("np.tanh({})", "np.sin({})", "-{}").format(a.text), a.shape, a.varies
            )
            return
        fitting = {"piece": ("piece", "row", "number"), "all": ("all", "row", "number")}
        others = [
            name for name in self.names if name.shape in fitting.get(a.shape, (a.shape, "number"))
        ]
        b = self.rng.choice(others)
        text = self.some(
            "{a} + {b}",
            "{a} - 0.5 * {b}",
            "np.tanh({a}) * {b}",
            "np.maximum({a}, {b})",
            "np.where({a} > {b}, {a}, np.sin({b}))",
        )
        self.add(text.format(a=a.text, b=b.text), a.shape, a.varies or b.varies)

    def collective(self) -> None:
        """A value of several devices, or the place of one."""
        kind = self.rng.randrange(8)
        a = self.any(varies=True)
        p = self.any("piece")
        assert a is not None
        assert p is not None
        if kind <= 1:
            self.add(f'psc.axis_sum({a.text}, "data")', a.shape, False)
        elif kind == 2:
            self.add(f'psc.axis_gather({p.text}, "data")', "all", False)
        elif kind == 3:
            joined = f'psc.axis_gather({p.text}, "data", {self.some("1", "-1")})'
            self.add(f"np.mean({joined}, axis=1)[:, None] * w", "piece", False)
        elif kind == 4:
            by = self.some("", ", -1", ", 2", ", -3", ", 0", ", by=1")
            self.add(f'psc.axis_shift({a.text}, "data"{by})', a.shape, True)
        elif kind == 5:
            b = self.any()
            assert b is not None
            self.add(f'{b.text} * psc.axis_index("data")', b.shape, True)
        elif kind == 6:
            b = self.any()
            assert b is not None
            self.add(f'{b.text} / psc.axis_size("data")', b.shape, b.varies)
        else:
            before = f'psc.axis_shift({p.text}[-1:], "data")'
            after = f'psc.axis_shift({p.text}[:1], "data", -1)'
            halo = f"np.concatenate([{before}, {p.text}, {after}])"
            self.add(f"{halo}[2:] - {halo}[:-2]", "piece", p.varies)

    def reduction(self) -> None:
        """Fewer axes."""
        a = self.any(self.rng.choice(["piece", "all", "row"]))
        if a is None:
            return
        kind = self.some("sum", "mean", "max")
        if a.shape == "row":
            self.add(f"np.{kind}({a.text})", "number", a.varies)
        elif self.rng.random() < 0.2:
            self.add(f"{a.text}[psc.axis_index('data')]" if a.shape == "all" else f"{a.text}[0]",
                     "row", a.varies or a.shape == "all")  # fmt: skip
        else:
            self.add(f"np.{kind}({a.text}, axis=0)", "row", a.varies)

    def along_rows(self) -> None:
        """Rows that depend on each other."""
        a = self.any(self.rng.choice(["piece", "all"])) or self.names[0]
        text = self.some(
            "np.cumsum({}, axis=0)",
            "np.sort({}, axis=0)",
            "{}[::-1]",
            "np.roll({}, 1, axis=0)",
            "{} @ np.outer(w, w)",
        )
        self.add(text.format(a.text), a.shape, a.varies)

    def branch(self) -> None:
        """One of two functions."""
        p = self.any("piece", varies=True)
        equal, varying = self.any("number", varies=False), self.any("number", varies=True)
        assert p is not None
        if varying is not None and self.rng.random() < 0.5:
            self.add(
                f"psc.cond({varying.text} > 0.1, lambda q: np.sin(q), lambda q: 2.0 * q, {p.text})",
                "piece",
                True,
            )
        elif equal is not None:
            one = self.some(
                'psc.axis_shift(q, "data")', 'q - psc.axis_sum(np.sum(q * q), "data")', "q"
            )
            other = self.some('q + psc.axis_sum(np.sum(q, axis=0), "data")', "q * 0.5")
            self.add(
                f"psc.cond({equal.text} > 0.1, lambda q: {one}, lambda q: {other}, {p.text})",
                "piece",
                True,
            )

    def loop(self) -> None:
        """A function that is applied again and again."""
        p = self.any("piece")
        v, e = self.any("row", varies=True), self.any("row", varies=False)
        assert p is not None
        assert e is not None
        v = v or e
        kind = self.rng.randrange(8)
        if kind == 0:
            step = f'psc.axis_shift(c, "data") * 0.5 + {p.text}'
            self.add(f"psc.fori_loop(0, 3, lambda i, c: {step}, x)", "piece", True)
        elif kind == 1 and v.varies:
            step = f'np.tanh(c + psc.axis_sum(c * {v.text}, "data"))'
            self.add(f"psc.fori_loop(0, 3, lambda i, c: {step}, {e.text})", "row", False)
        elif kind == 2:
            step = f"c * 0.5 + {v.text}"
            self.add(f"psc.fori_loop(0, 3, lambda i, c: {step}, {e.text})", "row", v.varies)
        elif kind == 3:
            step = '(psc.axis_shift(c[0], "data"), c[1] + np.sin(c[0]))'
            loop = f"lambda i, c: {step}, ({p.text}, 0.0 * {p.text})"
            self.add(f'psc.fori_loop(0, psc.axis_size("data"), {loop})[1]', "piece", p.varies)
        elif kind == 4:
            step = '(np.tanh(c + psc.axis_sum(r, "data")), r * c)'
            made = f"psc.scan(lambda c, r: {step}, {e.text}, x)"
            if self.rng.random() < 0.5:
                self.add(f"{made}[0]", "row", False)
            else:
                self.add(f"{made}[1]", "piece", True)
        elif kind == 5:
            step = self.some("0.5 * c", f"0.5 * c + 0.0 * {e.text}")
            made = f"lambda c: np.sum(np.abs(c)) > 1.0, lambda c: {step}, {v.text}, max_steps=8"
            self.add(f"psc.while_loop({made})", "row", v.varies)
        elif kind == 6:
            self.add(
                f'psc.vmap(lambda r: r - psc.axis_sum(r * {v.text}, "data"))({p.text})'
                if v.varies or p.varies
                else f"psc.vmap(lambda r: r * {v.text})({p.text})",
                "piece",
                p.varies,
            )
        else:
            again = 'lambda q: np.tanh(q) * psc.axis_sum(np.sum(q), "data")'
            if p.varies:
                self.add(f"psc.checkpoint({again})({p.text})", "piece", True)


def on_each_program(rng: random.Random, size: int) -> OnEach:
    """A random program."""
    return Writer(rng, size).program()
