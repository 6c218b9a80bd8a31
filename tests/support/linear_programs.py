"""Generated kernels that use keys once or more often, and what really becomes of the keys.

A program takes its keys from a pool: a free one most of the time, one that was used sometimes.  It
hands them to kernels and helpers, alone, in tuples, records, slices; carries them through loops in
any order; copies them within arrays; folds them with integers of all kinds; makes them of seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.modules.scope import Project
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.ir.primitive import NDArray
from pscdsl._src.ir.program import Equation, Evaluator, Function
from pscdsl._src.primitives.random import FoldIn, RandomBits, SplitKey
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import KEY
from pscdsl.typing.signatures import Choice
from tests.support.program_writer import ProgramWriter

HEAD: Final = """\
import numpy as np
import pscdsl as psc
from pscdsl import Key, bool_, f32, i32


class Pair(psc.Record):
    one: Key
    other: Key


class Rows(psc.Record):
    keys: Key["n"]
    key: Key


def drawn(key):
    return psc.random.uniform(key)


def seeded(seed):
    return psc.random.uniform(psc.random.key(seed))


@psc.kernel
def two(a: Key, b: Key) -> f32:
    return psc.random.uniform(a) + psc.random.uniform(b)


@psc.kernel
def first_of(a: Key, b: Key) -> f32:
    return psc.random.uniform(a)


@psc.kernel
def nested(a: Key, b: Key, c: Key) -> f32:
    return two(a, b) + drawn(c)


@psc.kernel
def pair(p: Pair) -> f32:
    return two(p.one, p.other)


@psc.kernel
def tupled(p: tuple[Key, tuple[Key, Key]]) -> f32:
    return nested(p[0], p[1][0], p[1][1])


@psc.kernel
def all_of(keys: Key["n"]) -> f32:
    return psc.map(psc.random.uniform, keys).sum()


@psc.kernel
def both(a: Key["n"], b: Key["m"]) -> f32:
    return all_of(a) + psc.map(lambda k: drawn(k), b).sum()


@psc.kernel
def rows(r: Rows) -> f32:
    return all_of(r.keys) + drawn(r.key)


@psc.kernel
def ends(keys: Key["n"]) -> f32:
    assert keys.shape[0] >= 2
    return two(keys[0], keys[-1])


@psc.kernel
def swapped(a: Key, b: Key) -> tuple[Key, Key]:
    return b, a


@psc.kernel
def onward(a: Key) -> tuple[Key, f32]:
    a, sub = psc.random.split(a)
    return a, psc.random.uniform(sub)


@psc.kernel
def turned(keys: Key["n"]) -> Key["n"]:
    return keys[::-1]


@psc.kernel
def folded(a: Key, i: i32) -> f32:
    return drawn(psc.random.fold_in(a, i))


@psc.kernel
def of_seed(seed: i32) -> f32:
    return seeded(seed)


@psc.kernel
def of_seeds(seed: i32, other: i32) -> f32:
    return of_seed(seed) + of_seed(other)


@psc.kernel
def fixed() -> f32:
    return seeded(7)


@psc.kernel
def f(
    key: Key, keys: Key["4"], more: Key["99"], seed: i32, seeds: i32["3"], i: i32, j: i32,
    up: bool_, t: f32,
) -> f32:
"""


class Writer(ProgramWriter):
    """Writes a kernel; which of its keys it uses again is left to chance."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, depth=0)
        self.again = self.rng.choice((0.0, 0.0, 0.15))
        self.risk = self.rng.choice((0.1, 0.5))
        self.free: list[str] = ["key"]
        self.used: list[str] = []
        self.arrays: list[str] = ["keys"]
        """Arrays of four keys that were not used."""
        self.spent: list[str] = []

    def program(self) -> str:
        """The whole module."""
        kinds: list[Callable[[], None]] = [
            self.draw, self.split, self.call, self.call, self.array, self.copy, self.part,
            self.carry, self.delay, self.loop_over, self.fold, self.seed, self.branch, self.wait,
        ]  # fmt: skip
        for _ in range(self.rng.randint(1, 5)):
            self.rng.choice(kinds)()
        return HEAD + "".join(f"    {line}\n" for line in self.lines) + "    return t\n"

    def risky(self) -> bool:
        """Whether to do something that is likely to use a key twice."""
        return self.chance(self.risk)

    def key(self) -> str:
        """A key: a free one most of the time."""
        if self.used and self.chance(self.again):
            return self.rng.choice(self.used)
        if not self.free:
            if self.arrays and self.chance(0.6):
                array = self.many()
                self.free += [f"{array}[{each}]" for each in ("0", "1", "-1")]
            else:
                self.count += 1
                self.free.append(f"more[{self.count}]")
        name = self.free.pop(self.rng.randrange(len(self.free)))
        self.used.append(name)
        return name

    def many(self) -> str:
        """An array of four keys: one that was not used most of the time."""
        if self.spent and self.chance(self.again):
            return self.rng.choice(self.spent)
        if not self.arrays:
            name = self.name("ks")
            self.line(f"{name} = psc.random.split({self.key()}, 4)")
            self.arrays.append(name)
        name = self.arrays.pop(self.rng.randrange(len(self.arrays)))
        self.spent.append(name)
        return name

    def add(self, text: str) -> None:
        """Add a number that was drawn."""
        self.line(f"t = t + {text}")

    def draw(self) -> None:
        """Draw one number."""
        self.add(f"drawn({self.key()})")

    def split(self) -> None:
        """Two keys in place of one."""
        one, other = self.name("k"), self.name("k")
        self.line(f"{one}, {other} = psc.random.split({self.key()})")
        self.free += [one, other]

    def call(self) -> None:
        """Give keys to kernels."""
        key, many = self.key, self.many
        kind = self.rng.randrange(12)
        if kind == 0:
            self.add(f"{self.rng.choice(('two', 'first_of'))}({key()}, {key()})")
        elif kind == 1:
            self.add(f"nested({key()}, {key()}, {key()})")
        elif kind == 2:
            self.add(f"pair(Pair({key()}, {key()}))")
        elif kind == 3:
            self.add(f"tupled(({key()}, ({key()}, {key()})))")
        elif kind == 4:
            whole = many()
            cuts = ("[:2]", "[1:3]", "[2:]", "[::2]", "[1::2]", "[:1]", "[::-1]")
            one, other = self.rng.choice((("[:2]", "[2:]"), ("[::2]", "[1::2]"), ("[:1]", "[1:3]")))
            if self.risky():
                one, other = self.rng.choice(cuts), self.rng.choice(cuts)
            self.add(f"both({whole}{one}, {whole}{other})")
        elif kind == 5:
            self.add(f"both({many()}, {many()})")
        elif kind == 6:
            whole = many()
            again = f"{whole}[{self.rng.randrange(4)}]" if self.risky() else key()
            self.add(f"rows(Rows({whole}[:{self.rng.randint(1, 4)}], {again}))")
        elif kind == 7:
            whole = many()
            at = self.rng.randrange(4) if self.risky() else self.rng.choice((1, 2))
            self.add(f"ends({whole}) + drawn({whole}[{at}])")
        elif kind == 8:
            one, other = self.name("k"), self.name("k")
            self.line(f"{one}, {other} = swapped({key()}, {key()})")
            self.free += [one, other]
        elif kind == 9:
            name = self.name("k")
            self.line(f"{name}, r{name} = onward({key()})")
            self.add(f"r{name}")
            self.free.append(name)
        elif kind == 10:
            whole = many()
            at, to = self.rng.randrange(4), self.rng.randrange(4)
            self.add(f"two(turned({whole})[{at}], {whole}[{to}])")
        else:
            name = key()
            one, other = self.rng.sample(("i", "i + 1", "j", "0", "1", "i * 2"), 2)
            self.add(f"folded({name}, {one}) + folded({name}, {other})")

    def array(self) -> None:
        """An array of keys of others."""
        name = self.name("ks")
        kind = self.rng.randrange(4)
        if kind == 0:
            parts = [self.key() for _ in range(4)]
            self.line(f"{name} = np.stack([{', '.join(parts)}])")
        elif kind == 1:
            one, other = self.many(), self.many()
            cuts = self.rng.choice((("[:2]", "[2:]"), ("[1:3]", "[:2]"), ("[:1]", "[1:]")))
            self.line(f"{name} = np.concatenate([{one}{cuts[0]}, {other}{cuts[1]}])[:4]")
        elif kind == 2:
            self.line(f"{name} = np.where(up, {self.many()}, {self.many()})")
        else:
            self.line(f"{name} = {self.many()}.reshape(2, 2).T.reshape(4)")
        self.arrays.append(name)

    def copy(self) -> None:
        """Keys that are copied within an array, or put into one."""
        name, whole = self.name("ks"), self.many()
        at = self.rng.choice(("0", "2", "i", "j"))
        of = self.rng.choice((f"{whole}[0]", f"{whole}[i]", self.key()))
        kind = self.rng.randrange(5)
        if kind == 0:
            self.line(f"{name} = psc.update({whole}, {at}, {of})")
        elif kind == 1:
            self.line(f"{name} = psc.dynamic_update({whole}, {whole}[1:3], ({at},))")
        elif kind == 2:
            places = ", ".join(str(self.rng.randrange(4)) for _ in range(4))
            self.line(f"{name} = {whole}[np.array([{places}])]")
        elif kind == 3:
            step = f"lambda i, c: psc.update(c, i, {self.rng.choice(('c[0]', 'c[i]', of))})"
            self.line(f"{name} = psc.fori_loop(0, 4, {step}, {whole})")
        else:
            step = "lambda i, s: (psc.update(s[0], i, s[1]), s[2], s[1])"
            given = f"({whole}, {self.key()}, {self.key()})"
            self.line(f"{name} = psc.fori_loop(0, 3, {step}, {given})[0]")
        self.arrays.append(name)

    def part(self) -> None:
        """Elements of an array, at places that are known or computed."""
        whole = self.many()
        places = ("0", "1", "3", "-1", "i", "j", "i + 1")
        one, other = self.rng.choice(places), self.rng.choice(places)
        if not self.risky():
            one = self.rng.choice(("0", "1", "3", "-1", "2"))
            self.add(f"drawn({whole}[{one}])")
            if one == "2":
                return
            self.free += [f"{whole}[{each}]" for each in ("0", "1", "2") if each != one]
        else:
            self.add(f"drawn({whole}[{one}]) + drawn({whole}[{other}])")

    def carry(self) -> None:
        """A loop that carries keys in some order, and uses some of them."""
        count = self.rng.randint(1, 5)
        given = [self.key() for _ in range(count)]
        names = [f"c{place}" for place in range(count)]
        step, order = self.name("step"), names[:]
        self.rng.shuffle(order)
        body = [f"def {step}(i, s):", f"    {', '.join(names)}, t = s"]
        if count > 1 and self.chance(0.3):
            body += self.inner(*self.rng.sample(names, 2))
        for name in self.rng.sample(names, self.rng.randint(0, min(2, count))):
            kind = self.rng.randrange(1, 4)
            if self.risky():
                body.append(f"    t = t + drawn({name})")
            elif kind == 1:
                by = self.rng.choice(("i", "i + 1", "2 * i", "3", "-i"))
                body.append(f"    t = t + drawn(psc.random.fold_in({name}, {by}))")
            else:
                body.append(f"    next_{name}, sub = psc.random.split({name})")
                body.append("    t = t + drawn(sub)")
                order = [f"next_{name}" if each == name else each for each in order]
        if self.chance(0.3) and self.risky():
            order[0] = self.rng.choice((names[-1], self.key()))
        body.append(f"    return {', '.join(order)}, t")
        self.lines += body
        turns = self.rng.choice((1, 2, 3, 6))
        found = [self.name("k") for _ in range(count)]
        carried = f"psc.fori_loop(0, {turns}, {step}, ({', '.join(given)}, t))"
        self.line(f"{', '.join(found)}, t = {carried}")
        self.free += found

    def inner(self, one: str, other: str) -> list[str]:
        """A loop in the body of a loop, over two of its keys."""
        step, order = self.name("inner"), self.rng.choice(("u, v", "v, u"))
        body = [f"    def {step}(j, r):", "        u, v, t = r"]
        if self.risky():
            body.append("        t = t + drawn(v)")
        elif self.chance(0.7):
            body += ["        u, sub = psc.random.split(u)", "        t = t + drawn(sub)"]
        body.append(f"        return {order}, t")
        turns = self.rng.choice((1, 2, 3))
        carried = f"psc.fori_loop(0, {turns}, {step}, ({one}, {other}, t))"
        return [*body, f"    {one}, {other}, t = {carried}"]

    def delay(self) -> None:
        """A scan over keys that keeps some for later."""
        count = self.rng.randint(1, 4)
        names = [f"c{place}" for place in range(count)]
        step, whole = self.name("step"), self.many()
        used = self.rng.sample([*names, "k"], 2 if self.risky() else 1)
        told = " + ".join(f"drawn({each})" for each in used)
        given = ", ".join(self.key() for _ in range(count))
        out = self.rng.choice(("0.0", "0.0", self.rng.choice([*names, "k"])))
        self.lines += [
            f"def {step}(s, k):",
            f"    {', '.join(names)}, t = s",
            f"    return ({', '.join([*names[1:], 'k'])}, t + {told}), {out}",
        ]
        last, stack = self.name("l"), self.name("ks")
        self.line(f"{last}, {stack} = psc.scan({step}, ({given}, t), {whole})")
        self.line(f"t = t + {last}[{count}]")
        if used == ["c0"] or self.risky():
            self.free.append(f"{last}[{self.rng.randrange(count)}]")
        if out != "0.0" and (out == used[0] or self.risky()):
            self.arrays.append(stack)

    def wait(self) -> None:
        """A loop whose condition draws too."""
        step, test = self.name("step"), self.name("test")
        drawing = self.chance(0.3)
        keep = self.rng.choice(("k", "sub"))
        self.lines += [
            f"def {test}(s):",
            "    return s[2] + drawn(s[0]) < 3" if drawing else "    return s[2] < 3",
            f"def {step}(s):",
            "    k, other, n = s",
            "    k, sub = psc.random.split(k)" if not drawing else "    sub = other",
            self.rng.choice(("    n = n + drawn(k if False else other)", "    n = n + 1")),
            f"    return {keep}, {self.rng.choice(('k', 'sub', 'other'))}, n + 1",
        ]
        one, other = self.name("k"), self.name("k")
        given = f"({self.key()}, {self.key()}, 0.0)"
        self.line(f"{one}, {other}, n{one} = psc.while_loop({test}, {step}, {given})")
        self.free += [one, other]

    def loop_over(self) -> None:
        """A loop over keys, by rows or by places."""
        whole = self.many()
        kind = self.rng.randrange(5)
        if kind == 0:
            self.add(f"psc.map(lambda k: drawn(k), {whole}).sum()")
        elif kind == 1:
            at = self.rng.choice(("i", "i + 1", "2 * i", "3 - i"))
            turns = self.rng.choice((2, 3, 4, 5))
            self.line(f"t = psc.fori_loop(0, {turns}, lambda i, t: t + drawn({whole}[{at}]), t)")
        elif kind == 2:
            one, other = self.rng.sample(("[:3]", "[1:]", "[::-1][:3]"), 2)
            self.add(f"psc.map(lambda a, b: two(a, b), {whole}{one}, {whole}{other}).sum()")
        elif kind == 3:
            self.add(f"psc.map(lambda k, m: two(k, m), {whole}, {self.many()}).sum()")
        else:
            self.add(f"psc.map(lambda i: drawn({whole}[i]), np.arange(4)).sum()")

    def number(self, counter: str) -> str:
        """An integer of a counter or an argument, in some type."""
        base = self.rng.choice((counter, counter, "i", "j", "seed"))
        factor = self.rng.choice((1, 1, 2, 3, 4, 256, 1 << 20, 1 << 30, -1))
        text = base if factor == 1 else f"{base} * {factor}"
        if self.chance(0.3):
            text = f"{text} * {self.rng.choice((2, 1 << 10, 5))}"
        if self.chance(0.4):
            text = f"{text} + {self.rng.choice((1, 2, 7, -1, 'j'))}"
        if self.chance(0.3):
            dtype = self.rng.choice(("np.uint8", "np.int8", "np.uint32", "np.int64", "np.uint64"))
            text = f"({text}).astype({dtype})"
        return text

    def fold(self) -> None:
        """Keys of one key and numbers."""
        name = self.key()
        kind = self.rng.randrange(4)
        constants: tuple[str, ...] = (
            "0",
            "1",
            "-1",
            "255",
            "2**32 - 1",
            "np.int8(-1)",
            "np.uint8(255)",
        )
        constants += ("np.uint64(2**64 - 1)", "np.int64(-1)", "np.uint32(2**32 - 1)", "2**32")
        if kind == 0:
            for number in self.rng.sample(constants, 2):
                self.add(f"drawn(psc.random.fold_in({name}, {number}))")
        elif kind == 1:
            turns = self.rng.choice((2, 5, 9))
            fold = f"drawn(psc.random.fold_in({name}, {self.number('n')}))"
            self.line(f"t = psc.fori_loop(0, {turns}, lambda n, t: t + {fold}, t)")
        elif kind == 2:
            dtype = self.rng.choice(("np.int32", "np.uint8", "np.int8", "np.int64"))
            most = self.rng.choice((2, 5, 9))
            over = f"np.arange({most}, dtype={dtype}) * {self.rng.choice((1, 2, 32, 64))}"
            fold = f"drawn(psc.random.fold_in({name}, n))"
            self.add(f"psc.map(lambda n: {fold}, {over}).sum()")
        else:
            self.add(f"drawn(psc.random.fold_in({name}, {self.number('i')}))")
            self.add(f"drawn(psc.random.fold_in({name}, {self.number('i')}))")

    def seed(self) -> None:
        """Keys of seeds."""
        seeds: tuple[str, ...] = (
            "seed",
            "seed",
            "seed + 1",
            "seeds[0]",
            "seeds[1]",
            "seeds[i]",
            "seeds[-1]",
            "3",
        )
        seeds += ("7", "seed * 2", "(t * 9).astype(np.int32)", "i", "seed.astype(np.int64)")
        kind = self.rng.randrange(6)
        if kind < 3:
            by = self.rng.choice(("seeded", "of_seed"))
            for each in self.rng.choices(seeds, k=self.rng.randint(1, 2)):
                cast = f"({each}).astype(np.int32)" if "64" in each and by == "of_seed" else each
                self.add(f"{by}({cast})")
        elif kind == 3:
            one, other = self.rng.choice(seeds[:8]), self.rng.choice(seeds[:8])
            self.add(self.rng.choice((f"of_seeds({one}, {other})", "fixed()")))
        elif kind == 4:
            self.add("psc.map(lambda s: seeded(s), seeds).sum()")
        else:
            each = self.rng.choice(("n", "n + 3", "3", "seeds[n]", "n // 2", "seed + n"))
            self.line(f"t = psc.fori_loop(0, 3, lambda n, t: t + seeded({each}), t)")

    def branch(self) -> None:
        """One of two functions of two keys."""
        one, other = self.name("k"), self.name("k")
        arms: tuple[str, ...] = (
            "lambda a, b: (a, b)",
            "lambda a, b: (b, a)",
            "lambda a, b: swapped(a, b)",
        )
        arms += ("lambda a, b: (psc.random.split(a)[0], b)", "lambda a, b: (a, a)")
        first, second = self.rng.choice(arms), self.rng.choice(arms)
        given = f"{self.key()}, {self.key()}"
        self.line(f"{one}, {other} = psc.cond(up, {first}, {second}, {given})")
        self.free += [one, other]


class Watch(Evaluator):
    """Runs a program and notes the keys that are consumed, and with what they are folded."""

    def __init__(self, sizes: Mapping[str, int], seen: list[tuple[int, ...]]) -> None:
        super().__init__(sizes)
        self.seen = seen

    def results(self, equation: Equation, inputs: Sequence[NDArray]) -> Sequence[NDArray]:
        """The results of an equation, whose key is noted."""
        if isinstance(equation.primitive, RandomBits | SplitKey):
            self.seen += [tuple(key) for key in inputs[0].reshape(-1, 2).tolist()]
        if isinstance(equation.primitive, FoldIn):
            word = int(inputs[1]) % (1 << 64)
            self.seen.append((*inputs[0].tolist(), word))
        return super().results(equation, inputs)

    def call(
        self, function: Function, sizes: Mapping[str, Size], operands: Sequence[NDArray]
    ) -> tuple[NDArray, ...]:
        """The results of another function."""
        inner = {name: self.size(size) for name, size in sizes.items()}
        return Watch(inner, self.seen).block(function.body, operands)


@dataclass(frozen=True)
class Inputs:
    """The arguments of one run; keys and seeds differ, as the caller has to see to."""

    i: int
    j: int
    up: bool
    t: float


RUNS: Final = (
    Inputs(0, 0, True, 0.5),
    Inputs(1, 2, False, -40.0),
    Inputs(2, 1, True, 3.0),
    Inputs(-1, 3, False, 0.0),
    Inputs(3, -5, True, 1.0),
)


def elaborated(text: str) -> Function:
    """The kernel `f` of a program."""
    module = Project().add(Source("program.py", text), None)
    definition = module.own("f")
    assert isinstance(definition, Definition)
    return definition.instance(Choice())


def used_once(function: Function) -> bool:
    """Whether no run uses a key twice."""
    return all(_once(function, run) for run in RUNS)


def _once(function: Function, run: Inputs) -> bool:
    seen: list[tuple[int, ...]] = []
    given: dict[str, NDArray] = {
        "key": np.array([12345, 678], np.uint32),
        "keys": np.arange(1000, 1008, dtype=np.uint32).reshape(4, 2),
        "more": np.arange(2000, 2198, dtype=np.uint32).reshape(99, 2),
        "seed": np.asarray(50, np.int32),
        "seeds": np.array([60, 71, 83], np.int32),
        "i": np.asarray(run.i, np.int32),
        "j": np.asarray(run.j, np.int32),
        "up": np.asarray(run.up),
        "t": np.asarray(run.t, np.float32),
    }
    params = function.body.params
    other = np.array([777, 1], np.uint32)
    operands = [given.get(var.hint, other if var.type.dtype is KEY else None) for var in params]
    assert all(each is not None for each in operands), [var.hint for var in params]
    with np.errstate(all="ignore"):
        Watch({}, seen).block(function.body, [each for each in operands if each is not None])
    keys = {each[:2] for each in seen if len(each) == 3}
    return len(set(seen)) == len(seen) and not keys & {each for each in seen if len(each) == 2}
