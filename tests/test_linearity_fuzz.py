"""Generated programs over keys: accepted if they use each key once, refused if they do not.

What is accepted is run, and every key that is consumed on the way is noted: none comes twice.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from pscdsl.evaluate import Evaluator
from pscdsl.frontend.check import check_source
from pscdsl.frontend.definitions import Definition
from pscdsl.frontend.project import Project
from pscdsl.frontend.source import Source
from pscdsl.ir import Atom, Block, Function
from pscdsl.primitive import NDArray
from pscdsl.primitives.random import FoldIn, RandomBits, SplitKey
from pscdsl.typing.dims import Size
from pscdsl.typing.signatures import Choice

PROGRAMS = 60

HEAD = """\
import numpy as np
import pscdsl as psc
from pscdsl import Key, f32


@psc.kernel
def noise(key: Key) -> f32:
    one, other = psc.random.split(key)
    return psc.random.normal(one) * psc.random.normal(other)


@psc.kernel
def onward(key: Key, t: f32) -> tuple[Key, f32]:
    key, sub = psc.random.split(key)
    return key, t + psc.random.uniform(sub)


"""


class Writer:
    """Writes a kernel that uses each key once; with `wrong`, one key once more."""

    def __init__(self, seed: int, wrong: bool) -> None:
        self.choose = random.Random(seed)
        self.wrong = wrong
        self.names = 0
        self.lines: list[str] = []

    def program(self) -> str:
        """The whole module."""
        self.lines.append("@psc.kernel\ndef f(key: Key, t: f32) -> f32:")
        free, used = self.body("    ", ["key"], self.choose.randint(3, 8), 0)
        if self.wrong:
            again = self.choose.choice(used) if used else "key"
            if not used:
                self.lines.append("    t = t + noise(key)")
            self.lines.append(f"    t = t + psc.random.normal({again})")
        del free
        self.lines.append("    return t")
        return HEAD + "\n".join(self.lines) + "\n"

    def fresh(self, hint: str) -> str:
        """A name that is not taken."""
        self.names += 1
        return f"{hint}{self.names}"

    def body(
        self, indent: str, free: list[str], count: int, depth: int
    ) -> tuple[list[str], list[str]]:
        """Statements; the keys that are left, and those that were consumed."""
        used: list[str] = []
        kinds = [self.draw, self.call, self.split, self.several, self.fold, self.onward, self.map]
        if depth < 2:
            kinds += [self.loop, self.branch]
        for _ in range(count):
            if not free:
                break
            key = free.pop(self.choose.randrange(len(free)))
            if self.choose.choice(kinds)(indent, key, free, depth):
                used.append(key)
        return free, used

    def draw(self, indent: str, key: str, free: list[str], depth: int) -> bool:
        """Draw one number."""
        self.lines.append(f"{indent}t = t + psc.random.normal({key})")
        return True

    def call(self, indent: str, key: str, free: list[str], depth: int) -> bool:
        """Give the key to a kernel."""
        self.lines.append(f"{indent}t = t * noise({key})")
        return True

    def split(self, indent: str, key: str, free: list[str], depth: int) -> bool:
        """Two keys in place of one."""
        one, other = self.fresh("k"), self.fresh("k")
        self.lines.append(f"{indent}{one}, {other} = psc.random.split({key})")
        free += [one, other]
        return True

    def several(self, indent: str, key: str, free: list[str], depth: int) -> bool:
        """An array of keys, used by parts."""
        keys = self.fresh("ks")
        self.lines.append(f"{indent}{keys} = psc.random.split({key}, 4)")
        free += [f"{keys}[0]", f"{keys}[-1]", f"{keys}[1:3][1]", f"{keys}.reshape(2, 2)[0, 1]"][:3]
        return True

    def fold(self, indent: str, key: str, free: list[str], depth: int) -> bool:
        """Two keys from a key and numbers."""
        for number in range(2):
            name = self.fresh("f")
            self.lines.append(f"{indent}{name} = psc.random.fold_in({key}, {number})")
            free.append(name)
        return True

    def onward(self, indent: str, key: str, free: list[str], depth: int) -> bool:
        """A kernel that gives a key back."""
        name = self.fresh("k")
        self.lines.append(f"{indent}{name}, t = onward({key}, t)")
        free.append(name)
        return True

    def map(self, indent: str, key: str, free: list[str], depth: int) -> bool:
        """A loop over keys, or over numbers that the key is folded with."""
        keys = f"psc.random.split({key}, 3)"
        each = f"psc.map(lambda k: psc.random.uniform(k), {keys})"
        if self.choose.random() < 0.5:
            folded = f"psc.random.fold_in({key}, i)"
            each = f"psc.map(lambda i: psc.random.uniform({folded}), np.arange(3))"
        self.lines.append(f"{indent}t = t + {each}.sum()")
        return True

    def nested(self, indent: str, name: str, depth: int) -> None:
        """A function of a key and a number that returns another key and a number."""
        self.lines.append(f"{indent}def {name}(key, t):")
        inner = indent + "    "
        free, _ = self.body(inner, ["key"], self.choose.randint(1, 4), depth + 1)
        if not free:
            # All are consumed: the last word is a key of a seed of which nothing is known.
            free = [f"psc.random.key((t * {self.choose.randrange(1000)}).astype(np.int32))"]
        self.lines.append(f"{inner}return {self.choose.choice(free)}, t")

    def loop(self, indent: str, key: str, free: list[str], depth: int) -> bool:
        """A loop that carries a key."""
        function, name = self.fresh("step"), self.fresh("k")
        self.nested(indent, function, depth)
        step = f"lambda i, s: {function}(*s)"
        self.lines.append(f"{indent}{name}, t = psc.fori_loop(0, 3, {step}, ({key}, t))")
        free.append(name)
        return False  # a body that hands the key on unused has not consumed it

    def branch(self, indent: str, key: str, free: list[str], depth: int) -> bool:
        """One of two functions of a key."""
        one, other, name = self.fresh("one"), self.fresh("other"), self.fresh("k")
        for function in (one, other):
            self.nested(indent, function, depth)
        arms = f"{one}, {other}"
        self.lines.append(f"{indent}{name}, t = psc.cond(t > 0, {arms}, {key}, t)")
        free.append(name)
        return False


class Watch(Evaluator):
    """Runs a program and notes the keys that are consumed, and with what they are folded."""

    def __init__(self, sizes: Mapping[str, int], seen: list[tuple[int, ...]]) -> None:
        super().__init__(sizes)
        self.seen = seen

    def block(self, block: Block, operands: Sequence[NDArray]) -> tuple[NDArray, ...]:
        """The results of a block."""
        values: dict[Atom, NDArray] = dict(zip(block.params, operands, strict=True))
        for equation in block.equations:
            inputs = [self._value(atom, values) for atom in equation.inputs]
            primitive = equation.primitive
            if isinstance(primitive, RandomBits | SplitKey):
                self.seen += [tuple(key) for key in inputs[0].reshape(-1, 2).tolist()]
            if isinstance(primitive, FoldIn):
                self.seen.append((*inputs[0].tolist(), int(inputs[1])))
            results = primitive.evaluate(self, *inputs)
            values.update(zip(equation.outputs, results, strict=True))
        return tuple([self._value(atom, values) for atom in block.results])

    def call(
        self, function: Function, sizes: Mapping[str, Size], operands: Sequence[NDArray]
    ) -> tuple[NDArray, ...]:
        """The results of another function."""
        inner = {name: self.size(size) for name, size in sizes.items()}
        return Watch(inner, self.seen).block(function.body, operands)


def _consumed(text: str) -> list[list[tuple[int, ...]]]:
    """What is consumed on a few runs."""
    module = Project().add(Source("program.py", text), None)
    definition = module.own("f")
    assert isinstance(definition, Definition)
    program = definition.instance(Choice())
    runs: list[list[tuple[int, ...]]] = []
    for t in (-50.0, 0.5, 50.0):
        seen: list[tuple[int, ...]] = []
        key = np.array([12345, 678], np.uint32)
        Watch({}, seen).block(program.body, [key, np.asarray(t, np.float32)])
        runs.append(seen)
    return runs


def _once(text: str) -> bool:
    for seen in _consumed(text):
        keys = {each[:2] for each in seen if len(each) == 3}
        if len(set(seen)) < len(seen) or keys & {each for each in seen if len(each) == 2}:
            return False
    return True


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_each_key_once_is_accepted(seed: int) -> None:
    text = Writer(seed, wrong=False).program()
    found = check_source(text, "program.py").diagnostics
    assert not found, text + "\n".join(f"{d.span} {d.message()}" for d in found)
    if "random.key(" not in text:  # which is the same in every run of a loop
        assert _once(text), text


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_a_key_once_more_is_refused(seed: int) -> None:
    text = Writer(seed, wrong=True).program()
    codes = {d.code for d in check_source(text, "program.py").diagnostics}
    assert codes == {"PSC601"}, text


def test_the_watch_sees_a_second_use() -> None:
    body = "@psc.kernel\ndef f(key: Key, t: f32) -> f32:\n    return t + noise(key)\n"
    assert _once(HEAD + body)
    again = "noise(psc.random.key(t.astype(np.int32)))"  # which the checker cannot see
    made = body.replace("noise(key)", f"{again} + {again}")
    assert not _once(HEAD + made)
