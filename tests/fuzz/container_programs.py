"""Random programs that change lists, dicts and sets: in branches and loops, and through all names.

`generate(seed)` is the text of a module with a function `main`.  The writer follows how
many items each container has, so that most programs run; now and then it takes an index or a key
that may not be there.  Numbers are small integers, so equality is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.support.program_writer import ProgramWriter

HEAD = """\
import numpy as np

import pscdsl as psc
from pscdsl import f64, i64


def push(items, v):
    items.append(v)
    return items


def first(items, default=0.0):
    if len(items) > 0:
        return items[0]
    return default


def swap(items, i, j):
    items[i], items[j] = items[j], items[i]


def twice(items):
    for i in range(len(items)):
        items[i] = np.clip(items[i] * 2, -99, 99)
    return items[-1]
"""


@dataclass(eq=False)
class Pile:
    """A list or a dict, whatever names it has."""

    kind: str
    """`v` if it holds vectors, `s` if it holds numbers."""
    size: int = 0
    keys: list[str] | None = None
    """The keys of a dict."""
    known: bool = True
    """Whether its size is that."""


@dataclass
class Names:
    """The names of a block."""

    piles: dict[str, Pile] = field(default_factory=dict[str, Pile])
    vectors: list[str] = field(default_factory=list[str])
    numbers: list[str] = field(default_factory=list[str])


class Writer(ProgramWriter):
    """Writes one program."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.names = Names({}, ["x", "w"], ["s", "x[0]"])
        self.rolled = 0
        """How many rolled loops are around."""
        self.fixed = 0
        """How many branches and loops are around, in which no size changes."""

    # Values.

    def number(self) -> str:
        """A number."""
        rng = self.rng
        options = [*self.names.numbers, str(rng.randrange(-3, 4)), f"{rng.randrange(-3, 4)}.0"]
        options += [f"{name}.sum()" for name in self.names.vectors]
        for name, pile in self.names.piles.items():
            if pile.kind == "s" and pile.size:
                options += [f"{name}[{self.key(pile)}]"]
                options += [f"first([*{name}{'.values()' if pile.keys is not None else ''}])"]
                if pile.known and pile.keys is None:
                    options += [f"sum({name})", f"{name}[-1]"]
            options.append(f"float(len({name}))")
        text = rng.choice(options)
        return (
            f"np.clip({text} + {rng.choice(self.names.numbers)}, -9, 9)"
            if rng.random() < 0.3
            else text
        )

    def vector(self) -> str:
        """An array of n numbers."""
        rng = self.rng
        options = [*self.names.vectors, f"{rng.choice(self.names.vectors)}.copy()", "np.zeros(n)"]
        for name, pile in self.names.piles.items():
            if pile.kind == "v" and pile.size:
                options += [f"{name}[{self.key(pile)}]"] * 2
        text = rng.choice(options)
        changed = (
            *(text, text, f"{text} + {self.number()}", f"{text}[::-1]"),
            *(f"np.clip({text} * 2, -9, 9)", f"np.clip({text} - {rng.choice(options)}, -9, 9)"),
        )
        return rng.choice(changed)

    def value(self, kind: str) -> str:
        """A value of a kind."""
        return self.vector() if kind == "v" else self.number()

    def key(self, pile: Pile) -> str:
        """A key or an index that is there."""
        if pile.keys is not None:
            return repr(self.rng.choice(pile.keys))
        place = self.rng.randrange(pile.size)
        if self.chance(0.02):
            return str(pile.size)
        return str(place) if self.chance(0.7) or not pile.known else str(place - pile.size)

    def pile(self, *, lists: bool = False, full: bool = False) -> tuple[str, Pile] | None:
        """A container with one of its names."""
        found = [
            (name, pile)
            for name, pile in self.names.piles.items()
            if (not lists or pile.keys is None) and (not full or pile.size)
        ]
        return self.rng.choice(found) if found else None

    # Statements.

    def statement(self) -> None:
        """Write a statement."""
        rng = self.rng
        some = [self.fresh, self.stored, self.stored, self.grown, self.grown, self.shrunk]
        some += [self.alias, self.bound, self.updated, self.array, self.called, self.ordered]
        if self.depth < 4:
            some += [self.branch, self.branch, self.unrolled, self.rolled_loop, self.walked]
            some += [self.collected, self.waiting]
        for _ in range(20):
            if rng.choice(some)():
                return
        self.fresh()

    def block(self, count: int) -> None:
        """Write some statements one level deeper, whose names end with the block."""
        before = Names({**self.names.piles}, [*self.names.vectors], [*self.names.numbers])
        with self.inside():
            for _ in range(count):
                self.statement()
        self.names = before

    def fresh(self) -> bool:
        """A new list or dict."""
        rng = self.rng
        kind, count = rng.choice("vvs"), rng.choice((0, 1, 2, 2, 3))
        values = [self.value(kind) for _ in range(count)]
        if self.chance(0.35):
            keys = ["p", "q", "r"][:count]
            rng.shuffle(keys)
            name = self.name("d")
            texts = [f"{key!r}: {value}" for key, value in zip(keys, values, strict=True)]
            self.line(f"{name} = {{{', '.join(texts)}}}")
            self.names.piles[name] = Pile(kind, count, keys)
            return True
        name = self.name("l")
        text = f"[{', '.join(values)}]"
        if count and self.chance(0.2):
            text = f"[{values[0]} for j in range({count})]"
        if self.chance(0.1):
            text = rng.choice((f"list({text})", f"{text}[:]", f"{text}.copy()", f"[*{text}]"))
        self.line(f"{name} = {text}")
        self.names.piles[name] = Pile(kind, count)
        return True

    def alias(self) -> bool:
        """Another name of a container, or a copy of it."""
        found = self.pile()
        if found is None:
            return False
        name, pile = found
        other = self.name("l" if pile.keys is None else "d")
        if self.chance(0.6):
            self.line(f"{other} = {name}")
            self.names.piles[other] = pile
        else:
            kind = "list" if pile.keys is None else "dict"
            text = self.rng.choice((f"{name}.copy()", f"{kind}({name})"))
            self.line(f"{other} = {text}")
            keys = None if pile.keys is None else [*pile.keys]
            self.names.piles[other] = Pile(pile.kind, pile.size, keys, pile.known)
        return True

    def bound(self) -> bool:
        """A name for an item, an array or a number."""
        if self.chance(0.5):
            name = self.name("y")
            self.line(f"{name} = {self.vector()}")
            self.names.vectors.append(name)
        else:
            name = self.name("t")
            self.line(f"{name} = {self.number()}")
            self.names.numbers.append(name)
        return True

    def array(self) -> bool:
        """A store into an array, which may be in a container."""
        rng = self.rng
        found = self.pile(full=True)
        text = rng.choice(self.names.vectors)
        if found is not None and found[1].kind == "v" and self.chance(0.7):
            text = f"{found[0]}[{self.key(found[1])}]"
        elif text in ("x", "w"):
            return False
        index = rng.choice(("0", "-1", ":", "::-1"))
        self.line(rng.choice((f"{text}[{index}] = {self.number()}", f"{text}[{index}] += 1")))
        return True

    def stored(self) -> bool:
        """Another item in the place of one."""
        found = self.pile(full=True)
        if found is None:
            return False
        name, pile = found
        key, value = self.key(pile), self.value(pile.kind)
        options = [f"{name}[{key}] = {value}"] * 3
        options += [f"{name}[{key}] += {self.number()}", f"{name}[{key}] *= 2"]
        other = self.key(pile)
        options += [f"{name}[{key}], {name}[{other}] = {name}[{other}], {name}[{key}]"]
        options += [f"{name}[{key}] = {name}[{other}]"]
        if pile.keys is None:
            options += [f"swap({name}, {key}, {other})", f"{name}.reverse()"]
            options += [
                f"{name}[:] = {name}[::-1]",
                f"{name}[{key}] = {name}.pop()"[:0] or options[0],
            ]
        else:
            options += [f"{name}.update({{{key}: {value}}})", f"{name} |= {{{key}: {value}}}"]
        self.line(self.rng.choice(options))
        return True

    def updated(self) -> bool:
        """A container that is made of another one, under its name."""
        found = self.pile()
        if found is None or self.fixed:
            return False
        name, pile = found
        value = self.value(pile.kind)
        if pile.keys is None:
            if self.chance(0.5) and pile.known:
                self.line(f"{name} = {name} + [{value}]")
                self.names.piles[name] = Pile(pile.kind, pile.size + 1)
            else:
                self.line(f"{name} = [v + 1 for v in {name}]")
                self.names.piles[name] = Pile(pile.kind, pile.size, None, pile.known)
        else:
            self.line(f"{name} = {{k: v + 1 for k, v in {name}.items()}}")
            self.names.piles[name] = Pile(pile.kind, pile.size, [*pile.keys])
        return True

    def grown(self) -> bool:
        """One item more."""
        found = self.pile()
        if found is None or (self.fixed and self.chance(0.9)):
            return False
        name, pile = found
        value = self.value(pile.kind)
        if pile.keys is None:
            options = [f"{name}.append({value})"] * 3
            options += [
                f"{name}.extend([{value}])",
                f"{name} += [{value}]",
                f"push({name}, {value})",
            ]
            options += [f"{name}.insert({self.rng.choice((0, 1, -1))}, {value})"]
            options += [f"{name}[0:0] = [{value}]"]
            self.line(self.rng.choice(options))
            pile.size += 1
            pile.known = pile.known and not self.fixed
            return True
        new = [key for key in "pqruv" if key not in pile.keys]
        if not new:
            return False
        key = new[0]
        options = [f"{name}[{key!r}] = {value}"] * 2
        options += [f"{name}.setdefault({key!r}, {value})", f"{name}.update({key}={value})"]
        self.line(self.rng.choice(options))
        pile.keys.append(key)
        pile.size += 1
        return True

    def shrunk(self) -> bool:
        """One item less."""
        found = self.pile(full=True)
        if found is None or not found[1].known or (self.fixed and self.chance(0.9)):
            return False
        name, pile = found
        if pile.keys is None:
            options = [f"{name}.pop()", f"{name}.pop(0)", f"del {name}[{self.key(pile)}]"]
            target = self.name("y" if pile.kind == "v" else "t")
            text = self.rng.choice(options)
            if text.startswith("del"):
                self.line(text)
            else:
                self.line(f"{target} = {text}")
                (self.names.vectors if pile.kind == "v" else self.names.numbers).append(target)
            pile.size -= 1
            return True
        key = self.rng.choice(pile.keys)
        self.line(self.rng.choice((f"del {name}[{key!r}]", f"{name}.pop({key!r})")))
        pile.keys.remove(key)
        pile.size -= 1
        return True

    def called(self) -> bool:
        """A function that changes a list, defined in the function or in the module."""
        found = self.pile(lists=True, full=True)
        if found is None:
            return False
        name, pile = found
        if self.chance(0.5):
            target = self.name("y" if pile.kind == "v" else "t")
            self.line(f"{target} = twice({name})")
            (self.names.vectors if pile.kind == "v" else self.names.numbers).append(target)
            return True
        function = self.name("f")
        self.line(f"def {function}(v):")
        self.line(f"    {name}[0] = v")
        self.line(f"    return {name}[-1]")
        target = self.name("y" if pile.kind == "v" else "t")
        self.line(f"{target} = {function}({self.value(pile.kind)})")
        (self.names.vectors if pile.kind == "v" else self.names.numbers).append(target)
        return True

    def ordered(self) -> bool:
        """Operands that are evaluated before or after a change."""
        found = self.pile(lists=True, full=True)
        if found is None or found[1].kind != "s" or self.fixed or not found[1].known:
            return False
        name, pile = found
        target = self.name("t")
        text = self.rng.choice(
            (
                f"{name}[0] + first(push({name}, {self.number()})) + {name}[-1]",
                f"len({name}) + len(push({name}, 1.0)) + {name}[0]",
            )
        )
        self.line(f"{target} = {text} * 1.0")
        pile.size += 1
        self.names.numbers.append(target)
        return True

    # Blocks.

    def condition(self) -> str:
        """A condition that the program computes, or one that is known."""
        rng = self.rng
        known = [f"len({name}) > {rng.randrange(3)}" for name in self.names.piles]
        if known and self.chance(0.15):
            return rng.choice(known)
        return f"{self.number()} {rng.choice('<>')} {rng.randrange(-2, 3)}"

    def branch(self) -> bool:
        """Two paths, which change the same things, or make the same change of a size."""
        self.line(f"if {self.condition()}:")
        grown = self.pile(lists=True)
        both = grown is not None and not self.fixed and self.chance(0.4)
        self.fixed += 1
        for turn in range(2):
            if turn:
                self.line("else:")
            self.block(self.rng.choice((1, 1, 2)))
            if both and grown is not None:
                self.line(f"    {grown[0]}.append({self.value(grown[1].kind)})")
            if not turn and not both and self.chance(0.3):
                break
        self.fixed -= 1
        if both and grown is not None:
            grown[1].size += 1
        return True

    def unrolled(self) -> bool:
        """A loop of few steps."""
        count, counter = self.rng.choice((2, 3)), self.name("i")
        grown = None if self.fixed or self.chance(0.5) else self.pile(lists=True)
        self.line(f"for {counter} in range({count}):")
        self.fixed += 1
        before = [*self.names.numbers]
        self.names.numbers.append(counter)
        self.block(self.rng.choice((1, 2)))
        if grown is not None:
            self.line(f"    {grown[0]}.append({self.value(grown[1].kind)})")
            grown[1].size += count
        self.names.numbers = before
        self.fixed -= 1
        return True

    def rolled_loop(self) -> bool:
        """A loop over an array or a size."""
        item = self.name("e")
        head, more = self.rng.choice(
            ((f"{item} in x", [item]), (f"{item} in range(n)", []), (f"{item} in w[1:]", [item]))
        )
        self.line(f"for {head}:")
        self.fixed += 1
        self.rolled += 1
        before = [*self.names.numbers]
        self.names.numbers += more
        self.block(self.rng.choice((1, 2, 2)))
        self.names.numbers = before
        self.rolled -= 1
        self.fixed -= 1
        return True

    def waiting(self) -> bool:
        """A `while` over a number in a list."""
        name, item = self.name("l"), self.number()
        self.line(f"{name} = [0.0, {item}]")
        self.line(f"while {name}[0] < {self.rng.choice((2, 3))}:")
        self.fixed += 1
        self.block(1)
        self.line(f"    {name}[0] += 1.0")
        self.fixed -= 1
        self.names.piles[name] = Pile("s", 2)
        return True

    def collected(self) -> bool:
        """A list to which a loop appends, and what is made of it."""
        name, item = self.name("l"), self.name("e")
        kind = self.rng.choice("sv")
        start = self.rng.choice(("", "", self.value(kind)))
        self.line(f"{name} = [{start}]")
        total = self.name("t")
        self.line(f"{total} = 0.0")
        self.line(f"for {item} in x:")
        self.line(f"    {total} = {total} + {item}")
        self.fixed += 1
        before = [*self.names.numbers]
        self.names.numbers += [item, total]
        if self.chance(0.5):
            self.block(1)
        own = ("{}", "{} * 2", "{} + 1.0") if kind == "s" else ("x + {}", "w * {}", "{} - x")
        for _ in range(self.rng.choice((1, 1, 2))):
            self.line(
                f"    {name}.append({self.rng.choice(own).format(self.rng.choice((item, total)))})"
            )
        self.names.numbers = before
        self.fixed -= 1
        target = self.name("y")
        if kind == "s":
            options = [f"np.array({name})[:n]", f"w + {name}[-1]", f"w + len({name})"]
        else:
            options = [f"np.array({name})[-1]", f"{name}[0] + {name}[-1]", f"np.stack({name})[0]"]
        if self.chance(0.3):
            self.line(f"{target} = np.zeros(n)")
            loop = self.name("e")
            self.line(f"for {loop} in {name}:")
            self.line(f"    {target} = np.clip({target} + {loop}, -99, 99)")
        else:
            self.line(f"{target} = {self.rng.choice(options)}")
        self.names.vectors.append(target)
        return True

    def walked(self) -> bool:
        """A loop over a container, which may change it."""
        found = self.pile(full=True)
        if found is None:
            return False
        name, pile = found
        item, place = self.name("y" if pile.kind == "v" else "t"), self.name("i")
        if pile.keys is None:
            heads = [f"{item} in {name}", f"{place}, {item} in enumerate({name})"]
            heads += [f"{item} in reversed({name})", f"{place}, {item} in zip(range(9), {name})"]
            head = self.rng.choice(heads)
        else:
            head = f"{place}, {item} in {name}.items()"
        self.line(f"for {head}:")
        self.fixed += 1
        before = Names({**self.names.piles}, [*self.names.vectors], [*self.names.numbers])
        (self.names.vectors if pile.kind == "v" else self.names.numbers).append(item)
        self.block(1)
        if f"{place}, " in head and self.chance(0.6):
            self.line(f"    {name}[{place}] = {item} * 2")
        self.names = before
        self.fixed -= 1
        return True

    def text(self) -> str:
        """The module."""
        self.line("n = len(x)")
        self.line("assert n >= 2")
        self.fresh()
        for _ in range(self.rng.choice((3, 5, 7, 9))):
            self.statement()
        shown: list[str] = []
        for name, pile in self.names.piles.items():
            shown.append(f"float(len({name}))")
            keys = pile.keys if pile.keys is not None else range(pile.size if pile.known else 0)
            shown += [f"{name}[{key!r}] * 1.0" for key in keys]
            if pile.keys is not None and pile.size:
                shown.append(f"[v * 1.0 for v in {name}.values()][0]")
        shown += [name for name in (*self.names.vectors, *self.names.numbers) if name[-1] != "]"]
        self.rng.shuffle(shown)
        self.line(f"return ({', '.join(shown[:8])},)")
        body = "\n".join(self.lines)
        kernel = f'@psc.kernel\ndef main(x: f64["n"], w: f64["n"], s: f64):\n{body}\n'
        return f"{HEAD}\n\n{kernel}"


def generate(seed: int, shared: bool = False) -> str:
    """The text of a program that changes lists and dicts."""
    return Writer(seed).text()
