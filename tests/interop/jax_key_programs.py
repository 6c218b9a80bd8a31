"""Random programs of `jax.random`, some of which use a key twice."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Writer:
    """Writes one function, statement by statement.

    A key is fresh, or used up; with some probability a used one is used again.
    """

    seed: int
    faulty: bool
    lines: list[str] = field(default_factory=list[str])
    fresh: list[str] = field(default_factory=list[str])
    used: list[str] = field(default_factory=list[str])
    count: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def name(self, stem: str) -> str:
        """Return a new name."""
        self.count += 1
        return f"{stem}{self.count}"

    def line(self, text: str, depth: int) -> None:
        """Write one line."""
        self.lines.append("    " * depth + text)

    def take(self) -> str:
        """Return a key that is used up by this, or was before."""
        if self.faulty and self.used and self.random.random() < 0.25:
            return self.random.choice(self.used)
        if not self.fresh:
            return "jr.clone(key)"
        key = self.fresh.pop(self.random.randrange(len(self.fresh)))
        self.used.append(key)
        return key

    def draw(self, key: str) -> str:
        """Return an expression that draws from a key."""
        function = self.random.choice(["normal", "uniform", "exponential"])
        return self.random.choice(
            [
                f"jr.{function}({key})",
                f"jax.jit(jr.{function})({key})",
                f"drawn({key})",
                f"(lambda k: jr.{function}(k))({key})",
                f"Layer({key}).weight",
                f"functools.partial(jr.{function}, shape=())({key})",
                f"jax.vmap(jr.{function})(jr.split({key}, 2)).sum()",
            ]
        )

    def statement(self, depth: int, nested: int) -> None:
        """Write one statement of a random kind."""
        kinds: list[Callable[[int, int], None]] = [
            self._draw,
            self._split,
            self._unpack,
            self._fold,
            self._tuple,
            self._call,
            self._dict,
            self._object,
            self._stack,
        ]
        if nested:
            kinds += [self._branch, self._loop, self._scan, self._cond, self._list, self._closure]
            kinds += [self._fori, self._map, self._while, self._switch, self._shared, self._maker]
        self.random.choice(kinds)(depth, nested)

    def _draw(self, depth: int, _: int) -> None:
        self.line(f"x = x + {self.draw(self.take())}", depth)

    def _split(self, depth: int, _: int) -> None:
        new = self.name("k")
        key = self.take()
        self.line(f"{new} = jr.split({key}, 3)", depth)
        names = [f"{new}_{n}" for n in range(3)]  # jax counts an item that is taken as used
        self.line(f"{', '.join(names)} = {', '.join(f'{new}[{n}]' for n in range(3))}", depth)
        self.fresh += names

    def _unpack(self, depth: int, _: int) -> None:
        key, one, two = self.take(), self.name("k"), self.name("k")
        self.line(f"{one}, {two} = jr.split({key})", depth)
        self.fresh += [one, two]

    def _fold(self, depth: int, _: int) -> None:
        if self.fresh:
            new = self.name("k")
            self.count += 1
            self.line(f"{new} = jr.fold_in({self.random.choice(self.fresh)}, {self.count})", depth)
            self.fresh.append(new)

    def _tuple(self, depth: int, _: int) -> None:
        one, two, pair = self.take(), self.take(), self.name("p")
        if one != two or self.faulty:
            kind = self.random.choice(["({}, {})", "[{}, {}]"])
            self.line(f"{pair} = {kind.format(f'jr.clone({one})', f'jr.clone({two})')}", depth)
            self.fresh += [f"{pair}[0]", f"{pair}[1]"]

    def _call(self, depth: int, _: int) -> None:
        key, new = self.take(), self.name("k")
        self.line(f"{new}, y = advanced({key})", depth)
        self.line("x = x + y", depth)
        self.fresh.append(new)

    def _inside(self, depth: int, nested: int, key: str) -> None:
        """Write a block with one key of its own: keys from outside are used once at most."""
        fresh, used = self.fresh, self.used
        self.fresh, self.used = [key], []
        self.line("x = x + 1.0", depth)
        for _ in range(self.random.randint(1, 2)):
            self.statement(depth, nested - 1)
        self.fresh, self.used = fresh, used

    def _branch(self, depth: int, nested: int) -> None:
        key = self.take()
        taken = self.random.random() < 0.5
        self.line(f"if flag == {taken}:" if self.faulty else "if flag:", depth)
        self._inside(depth + 1, nested, key)
        self.line("else:", depth)
        self._inside(depth + 1, nested, key)

    def _loop(self, depth: int, nested: int) -> None:
        if self.faulty and self.random.random() < 0.3:
            self.line("for _ in range(2):", depth)
            self.line(f"x = x + {self.draw(self.take())}", depth + 1)
            return
        key, one = self.take(), self.name("k")
        if self.random.random() < 0.5:
            self.line(f"for {one} in jr.split({key}, 2):", depth)
            self._inside(depth + 1, nested, one)
            return
        carried = self.name("k")
        self.line(f"{carried} = jr.clone({key})", depth)
        self.line("for _ in range(2):", depth)
        self.line(f"{carried}, {one} = jr.split({carried})", depth + 1)
        self._inside(depth + 1, nested, one)
        self.fresh.append(carried)

    def _scan(self, depth: int, nested: int) -> None:
        body = self.name("body")
        if self.faulty and self.random.random() < 0.3:
            key = self.take()
            self.line(f"def {body}(x, _):", depth)
            self.line(f"return x + {self.draw(key)}, None", depth + 1)
            self.line(f"x, _ = jax.lax.scan({body}, x, None, length=2)", depth)
            return
        key, carried = self.take(), self.name("k")
        self.line(f"def {body}(carry, _):", depth)
        self.line("x, key = carry", depth + 1)
        self.line("key, sub = jr.split(key)", depth + 1)
        self._inside(depth + 1, nested, "sub")
        self.line("return (x, key), None", depth + 1)
        self.line(
            f"(x, {carried}), _ = jax.lax.scan({body}, (x, jr.clone({key})), None, length=2)", depth
        )
        self.fresh.append(carried)

    def _fori(self, depth: int, nested: int) -> None:
        body, key = self.name("body"), self.take()
        self.line(f"def {body}(i, x, key={key}):", depth)
        self.line("sub = jr.fold_in(key, i)", depth + 1)
        self._inside(depth + 1, nested, "sub")
        self.line("return x", depth + 1)
        self.line(f"x = jax.lax.fori_loop(0, 2, {body}, x)", depth)

    def _cond(self, depth: int, _: int) -> None:
        key = self.take()
        one, two = self.draw("k"), self.draw("k")
        self.line(f"x = x + jax.lax.cond(x > 0, lambda k: {one}, lambda k: {two}, {key})", depth)

    def _map(self, depth: int, _: int) -> None:
        key = self.take()
        self.line(
            f"x = x + jax.lax.map(lambda k: {self.draw('k')}, jr.split({key}, 2)).sum()", depth
        )

    def _list(self, depth: int, _: int) -> None:
        key = self.take()
        if self.faulty and self.random.random() < 0.3:
            self.line(f"x = x + sum([{self.draw(key)} for _ in range(2)])", depth)
        else:
            self.line(f"x = x + sum([{self.draw('k')} for k in jr.split({key}, 2)])", depth)

    def _closure(self, depth: int, nested: int) -> None:
        key, name = self.take(), self.name("inner")
        self.line(f"def {name}(x):", depth)
        if self.faulty and self.random.random() < 0.3:
            self.line(f"return x + {self.draw(key)}", depth + 1)
            self.line(f"x = {name}(x)", depth)
        else:
            self._inside(depth + 1, nested, key)
            self.line("return x", depth + 1)
        self.line(f"x = {name}(x)", depth)

    def _dict(self, depth: int, _: int) -> None:
        one, two, name = self.take(), self.take(), self.name("d")
        if one != two or self.faulty:
            self.line(f'{name} = {{"a": jr.clone({one}), "b": jr.clone({two})}}', depth)
            self.fresh += [f'{name}["a"]', f'{name}["b"]']

    def _object(self, depth: int, _: int) -> None:
        key, name = self.take(), self.name("sampler")
        self.line(f"{name} = Sampler(jr.clone({key}))", depth)
        for _ in range(self.random.randint(1, 2)):
            wrong = self.faulty and self.random.random() < 0.3
            self.line(f"x = x + {name}.{'again' if wrong else 'draw'}()", depth)
        self.fresh.append(f"{name}.key")

    def _stack(self, depth: int, _: int) -> None:
        one, two = self.take(), self.take()
        if one != two or self.faulty:
            kinds = ["jnp.array([{}, {}])", "jnp.concatenate([{}[None], {}[None]])"]
            kind = self.random.choice(kinds).format(one, two)  # jax refuses each use of a stack
            self.line(f"x = x + jax.vmap(jr.normal)({kind}).sum()", depth)

    def _while(self, depth: int, nested: int) -> None:
        name, key, carried = self.name("loop"), self.take(), self.name("k")
        self.line(f"def {name}(carry):", depth)
        self.line("x, key, n = carry", depth + 1)
        if self.faulty and self.random.random() < 0.3:
            self.line(f"return x + {self.draw('key')}, key, n + 1", depth + 1)
        else:
            self.line("key, sub = jr.split(key)", depth + 1)
            self._inside(depth + 1, nested, "sub")
            self.line("return x, key, n + 1", depth + 1)
        start = f"(x, jr.clone({key}), 0)"
        call = f"jax.lax.while_loop(lambda carry: carry[2] < 3, {name}, {start})"
        self.line(f"x, {carried}, _ = {call}", depth)
        self.fresh.append(carried)

    def _switch(self, depth: int, _: int) -> None:
        key = self.take()
        ways = ", ".join(f"lambda k: {self.draw('k')}" for _ in range(3))
        self.line(f"x = x + jax.lax.switch(1, [{ways}, lambda k: 0.0], {key})", depth)

    def _shared(self, depth: int, _: int) -> None:
        """Map a function over numbers, with one key for all and one for each."""
        name, shared, own = self.name("mapped"), self.take(), self.take()
        if shared == own and not self.faulty:
            return
        self.line(f"def {name}(one, two, y):", depth)
        self.line("x = y", depth + 1)
        fresh, used = self.fresh, self.used
        self.fresh, self.used = ["one", "two"], []
        for _ in range(self.random.randint(1, 2)):
            self.statement(depth + 1, 0)  # jax runs both ways of a `cond` that is mapped
        self.fresh, self.used = fresh, used
        self.line("return x", depth + 1)
        keys = f"{shared}, jr.split({own}, 2), jnp.zeros(2)"
        self.line(f"x = x + jax.vmap({name}, in_axes=(None, 0, 0))({keys}).sum()", depth)

    def _maker(self, depth: int, _: int) -> None:
        """Return a function that has a key of its own, and call it."""
        make, made, key = self.name("make"), self.name("made"), self.take()
        self.line(f"def {make}(key, scale=1.0):", depth)
        self.line("def draw(x):", depth + 1)
        self.line(f"return x + scale * {self.draw('key')}", depth + 2)
        self.line("return draw", depth + 1)
        self.line(f"{made} = {make}({key})", depth)
        for _ in range(2 if self.faulty and self.random.random() < 0.3 else 1):
            self.line(f"x = {made}(x)", depth)


HEAD = """\
import functools

import jax
import jax.numpy as jnp
import jax.random as jr


def drawn(key):
    return jr.normal(key)


def advanced(key):
    key, sub = jr.split(key)
    return key, jr.uniform(sub)


class Layer:
    def __init__(self, key):
        self.weight = jr.normal(key)


class Sampler:
    def __init__(self, key):
        self.key = key

    def draw(self):
        self.key, sub = jr.split(self.key)
        return jr.normal(sub)

    def again(self):
        return jr.normal(self.key)


"""


def program(seed: int) -> str:
    """Return a program whose function `main(key, flag)` uses a key twice, perhaps."""
    writer = Writer(seed, faulty=bool(seed % 2), fresh=["key"])
    for _ in range(writer.random.randint(2, 6)):
        writer.statement(1, 2)
    body = "\n".join(writer.lines)
    return f"{HEAD}def main(key, flag):\n    x = 0.0\n{body}\n    return x\n"
