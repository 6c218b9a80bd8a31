"""Random statements of plain NumPy: names, aliases, views and stores."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from tests.fuzz.numpy_values import FLOATS, Array, Counter, Shape, Values


class Stores(Values):
    """Writes statements, and follows which names there are after them."""

    def __init__(self, seed: int, shared: bool) -> None:
        super().__init__(seed, shared)
        self.nested = 0
        """How many branches and loops are around a statement."""
        self.loops = 0
        self.locked: frozenset[str] = frozenset()
        """Names of functions around, which are read and not bound."""
        self.leaves: Callable[[], str] | None = None
        """The result of a function that may be left early."""
        self.left: int = self.rng.randrange(2, 11)
        """How many statements there may be."""
        self.enabled: list[Callable[[], bool]] = []

    @contextmanager
    def block(self, *names: Array | Counter, loop: bool = False) -> Generator[None]:
        """What stands in a branch or a loop, where there are some names more."""
        around = self.scope
        self.scope = around.copy()
        for each in names:
            if isinstance(each, Array):
                self.scope.arrays.append(each)
            else:
                self.scope.counters.append(each)
        self.depth += 1
        self.nested += 1
        self.loops += loop
        try:
            yield
        finally:
            self.scope = around
            self.depth -= 1
            self.nested -= 1
            self.loops -= loop

    def statements(self, count: int) -> None:
        """Some statements."""
        written = len(self.lines)
        for _ in range(count):
            for _ in range(8):
                if self.rng.choice(self.enabled)():
                    break
        if len(self.lines) == written:
            self.line("pass")

    def body(self) -> None:
        """The statements of a block."""
        count = self.rng.choice((1, 1, 2, 2, 3)) if self.nested < 3 else 1
        self.left -= count
        self.statements(count)

    def define(self, dtype: str, shape: Shape, own: bool = True, letters: str = "yzuvw") -> str:
        """A new name for an array or a number."""
        name = self.name(letters)
        self.scope.arrays.append(Array(name, dtype, shape, own))
        return name

    def vectors(self, rank: int | None = None) -> list[Array]:
        """The arrays of numbers, of some rank."""
        found = [each for each in self.scope.arrays if each.shape and each.dtype != "bool_"]
        return [each for each in found if rank is None or len(each.shape) == rank]

    def shape(self) -> Shape:
        """The shape of an array in sight."""
        known = [each.shape for each in self.vectors() if "?" not in each.shape]
        return self.rng.choice(known) if known else ("n",)

    def rebindable(self) -> list[Array]:
        """The names that a statement here may bind to something else."""
        return [each for each in self.scope.arrays if each.name not in self.locked]

    def bound(self, name: Array, own: bool) -> None:
        """Note what a name may be."""
        name.own = own and (name.own or not self.nested)

    # Names.

    def fresh(self) -> bool:
        """A new array."""
        shape, dtype = self.shape(), self.rng.choice(("f64", "f64", "f64", "f64", "i64"))
        text = self.new(dtype, shape) if self.chance(0.5) else self.bounded(dtype, shape)
        if self.chance(0.4):
            sources = [each for each in self.vectors() if each.dtype == dtype]
            for each in self.rng.sample(sources, min(1, len(sources))):
                shape = each.shape
                text = self.rng.choice((f"{each.name}.copy()", f"np.array({each.name})"))
        if "?" in shape:
            return False
        made = text.startswith(("np.", "-", "abs")) or text.endswith(".copy()") or " + " in text
        name = self.define(dtype, shape, made)
        return self.line(f"{name} = {text}")

    def number(self) -> bool:
        """A new number, or one that changes."""
        dtype = self.rng.choice(("f64", "f64", "i64"))
        known = [each for each in self.rebindable() if not each.shape and each.dtype == dtype]
        text = self.bounded(dtype, ())
        if known and self.chance(0.7):
            name = self.rng.choice(known).name
            sign = self.rng.choice(("=", "+=", "-=", "="))
            return self.line(f"{name} {sign} {text}")
        return self.line(f"{self.define(dtype, (), letters='rst')} = {text}")

    def alias(self) -> bool:
        """Another name for an array."""
        known = self.vectors()
        if not known:
            return False
        of = self.rng.choice(known)
        name = self.define(of.dtype, of.shape, of.own)
        return self.line(f"{name} = {of.name}")

    def view(self) -> bool:
        """A name for a part of an array."""
        of = self.pick(self.vectors(), own=False)
        found = None if of is None else self.part(of)
        if of is None or found is None or ("?" in of.shape and len(of.shape) > 1):
            return False
        text, shape = found
        if "?" in of.shape:
            text, shape = f"{of.name}[::-1]", of.shape
        name = self.define(of.dtype, shape, of.own, "pgh")
        if self.chance(0.1):
            text = f"({name}b := {text})"
        return self.line(f"{name} = {text}")

    def rebind(self) -> bool:
        """A known name for another array: the same one as another name, a part, or a new one."""
        known = [each for each in self.rebindable() if each.shape and each.dtype in FLOATS]
        if not known:
            return False
        name = self.rng.choice(known)
        others = [each for each in self.vectors() if each.shape == name.shape]
        others = [each for each in others if each.dtype == name.dtype and each is not name]
        if others and self.chance(0.6):
            other = self.rng.choice(others)
            self.bound(name, other.own)
            part = self.rng.choice(("", "", "", "[::-1]", "[:]", ".copy()"))
            return self.line(f"{name.name} = {other.name}{part}")
        if "?" in name.shape:
            return False
        text = self.bounded(name.dtype, name.shape)
        self.bound(name, text.startswith(("np.", "-")))
        return self.line(f"{name.name} = {text}")

    def swap(self) -> bool:
        """Names that change places."""
        known = [each for each in self.rebindable() if "?" not in each.shape]
        pairs = [(a, b) for a in known for b in known if a is not b]
        pairs = [(a, b) for a, b in pairs if (a.dtype, a.shape) == (b.dtype, b.shape) and a.shape]
        if not pairs:
            return False
        a, b = self.rng.choice(pairs)
        third = self.bounded(a.dtype, a.shape)
        texts = [f"{b.name}, {a.name}"] * 3 + [f"{b.name}, {third}", f"{b.name}, {b.name}"]
        text = self.rng.choice(texts)
        own = a.own and b.own and third not in text
        self.bound(a, own)
        self.bound(b, own)
        return self.line(f"{a.name}, {b.name} = {text}")

    def together(self) -> bool:
        """One new array with two names, or two results of one statement."""
        shape = self.shape()
        text = self.bounded("f64", shape) if self.chance(0.4) else self.new("f64", shape)
        own = text.startswith(("np.", "-"))
        a, b = self.define("f64", shape, own), self.define("f64", shape, own)
        return self.line(f"{a} = {b} = {text}")

    # Stores.

    def place(self, of: Array) -> tuple[str, Shape | None]:
        """What stands on the left of a store, and its shape; None takes numbers alone."""
        rng, name = self.rng, of.name
        known = "?" not in of.shape and all(self.at_least(size) for size in of.shape)
        options: list[tuple[str, Shape | None]] = []
        if known:
            indices = ", ".join(self.index(size) for size in of.shape)
            options += [(f"{name}[{indices}]", ())] * 5
            if len(of.shape) == 2 and "%" not in indices:
                i, j = indices.split(", ")
                options += [(f"{name}[{i}][{j}]", ()), (f"{name}[:, {j}][{i}]", ())]
            if of.shape[0] == "n" and any(each.name == "c" for each in self.scope.arrays):
                options += [(f"{name}[c]", of.shape)] * 2
            options.append((f"{name}[[0, -1]]", ("2", *of.shape[1:])))
            text = f"{name}[{self.mask(of.shape)}]"
            options += [(text, None)] * 2
            found = self.part(of)
            if found and found[0].startswith(f"{name}["):
                text, shape = found
                options += [(text, None if "?" in shape else shape)] * 5
        options.append((f"{name}[:]", None if "?" in of.shape else of.shape))
        options.append((f"{name}[...]", None if "?" in of.shape else of.shape))
        return rng.choice(options)

    def stored(self, dtype: str, shape: Shape | None) -> str:
        """What is stored at a place of a shape."""
        if shape is None:
            return self.bounded(dtype, (), 1)
        if shape and self.chance(0.25):
            shape = self.rng.choice(((), shape[1:]))
        if dtype == "f64" and self.chance(0.03):
            dtype = self.rng.choice(("i64", "f32"))
        return self.bounded(dtype, shape)

    def store(self) -> bool:
        """A store into a part of an array."""
        of = self.pick(self.vectors())
        if of is None:
            return False
        place, shape = self.place(of)
        if self.chance(0.35):
            sign = self.rng.choice(("+=", "-=", "+=", "*="))
            text = self.literal("i64") if sign == "*=" else self.stored(of.dtype, shape)
            self.line(f"{place} {sign} {text}")
            return self.clipped(of) if sign == "*=" or self.loops else True
        masked = [each for each in self.vectors() if each.shape == of.shape]
        if shape is None and "(" in place and self.chance(0.4) and place.count("[") == 1:
            mask = place.partition("[")[2]
            same = [each.name for each in masked if each.dtype == of.dtype]
            return bool(same) and self.line(f"{place} = {self.rng.choice(same)}[{mask} + 1")
        return self.line(f"{place} = {self.stored(of.dtype, shape)}")

    def clipped(self, of: Array) -> bool:
        """The numbers of an array made small again, now and then."""
        if self.chance(0.5):
            return True
        name = of.name
        texts = (f"np.clip({name}, -9, 9, out={name})", f"{name}[:] = np.clip({name}, -9, 9)")
        return self.line(self.rng.choice((*texts, f"{name} %= 7")))

    def in_place(self) -> bool:
        """An operator that changes a whole array."""
        of = self.pick(self.vectors())
        if of is None or of.name in self.locked:
            return False
        shape = None if "?" in of.shape else of.shape
        sign = self.rng.choice(("+=", "-=", "+=", "*=", "%=", "//="))
        text = self.stored(of.dtype, shape) if sign in ("+=", "-=") else "2"
        self.line(f"{of.name} {sign} {text}")
        return self.clipped(of) if sign == "*=" or self.loops else True

    def method(self) -> bool:
        """A function or method that changes an array."""
        rng, of = self.rng, self.pick(self.vectors())
        if of is None:
            return False
        name, value = of.name, self.bounded(of.dtype, (), 1)
        options = [f"{name}.fill({value})", f"{name}[::-1].fill({value})", f"{name}.sort()"]
        if "?" not in of.shape:
            e = self.bounded(of.dtype, of.shape)
            m = self.mask(of.shape)
            options += [f"np.copyto({name}, {e})", f"np.copyto({name}, {e}, where={m})"]
            options += [f"np.add({e}, {value}, out={name})", f"np.minimum({name}, {e}, {name})"]
            options += [
                f"np.subtract({e}, {name}, out={name})",
                f"np.putmask({name}, {m}, {value})",
            ]
            options += [f"np.negative({name}, out={name})", f"np.place({name}, {m}, [1])"]
            options += [f"np.maximum({name}, 0, where={m}, out={name})"]
            if len(of.shape) == 1:
                options += [f"np.cumsum({e}, out={name})", f"np.take({e}, [0], out={name}[:1])"]
            if of.shape[0] == "n" and any(each.name == "c" for each in self.scope.arrays):
                row = self.bounded(of.dtype, of.shape)
                options += [f"np.add.at({name}, c, {row})", f"np.maximum.at({name}, c, {value})"]
                options += [f"np.subtract.at({name}, c, {value})", f"np.put({name}, c, {value})"]
            if len(of.shape) == 2:
                options += [f"np.fill_diagonal({name}, {value})", f"{name}.flat[0] = {value}"]
                options += [f"{name}[0].sort()", f"{name}.T.sort()", f"{name}.sort(axis=0)"]
                options += [f"{name}.reshape(-1)[:] = {value}", f"{name}[:, 0].fill({value})"]
        self.line(rng.choice(options))
        return self.clipped(of) if self.loops else True

    def fancy(self) -> bool:
        """A store at an array or a list of indices, of which some are alike."""
        rng, of = self.rng, self.pick(self.vectors())
        if of is None or "?" in of.shape or not all(map(self.at_least, of.shape)):
            return False
        name, rest = of.name, of.shape[1:]
        value = self.bounded(of.dtype, (), 1)
        pair, three = self.bounded(of.dtype, ("2", *rest)), self.bounded(of.dtype, ("3", *rest))
        i, j = self.index(of.shape[0]), self.index(of.shape[0])
        options = [f"{name}[[{i}, {j}]] = {pair}", f"{name}[[{i}, {j}, {i}]] += {three}"]
        options += [f"{name}[np.array([{i}, {j}])] -= {value}", f"{name}[[0, 0]] += 1"]
        if not rest:
            options.append(f"{name}[[{i}, {j}]] = [{value}, {self.literal(of.dtype)}]")
        else:
            options += [f"{name}[[{i}, {j}], 0] = {value}", f"{name}[:, [0, -1]] = {value}"]
            options += [f"{name}[[0, -1], [0, -1]] += {value}"]
        if of.shape[0] == "n" and any(each.name == "c" for each in self.scope.arrays):
            whole = self.bounded(of.dtype, of.shape)
            options += [f"{name}[c] = {whole}", f"{name}[c] += {whole}", f"{name}[c] *= -1"]
            options += [f"np.add.at({name}, c, {whole})", f"{name}[c[::-1]] = {name}[c]"]
            options += [f"np.minimum.at({name}, c, {value})", f"{name}[c % 2 == 0] = {value}"]
        return self.line(rng.choice(options))

    def masked(self) -> bool:
        """Truth values that have a name, and a store where they hold."""
        of = self.pick(self.vectors())
        if of is None or "?" in of.shape:
            return False
        mask = self.mask(of.shape)
        name = self.define("bool_", of.shape, letters="m")
        self.line(f"{name} = {mask}")
        more = ("&=", "|=", "^=")
        if self.chance(0.4):
            self.line(f"{name} {self.rng.choice(more)} {self.mask(of.shape)}")
        elif self.chance(0.3):
            self.line(f"{name}[:1] = {self.rng.choice(('True', 'False', 'x[0] > 0'))}")
        e = self.array(of.dtype, of.shape, 0)
        stored = (*[self.bounded(of.dtype, ())] * 3, f"({e})[{name}] + 1", f"{of.name}[{name}] % 5")
        sign = self.rng.choice(("=", "=", "+="))
        return self.line(f"{of.name}[{name}] {sign} {self.rng.choice(stored)}")

    def exchange(self) -> bool:
        """Elements or rows that change places, or do not."""
        of = self.pick([each for each in self.vectors() if self.at_least(each.shape[0])])
        if of is None or "?" in of.shape:
            return False
        name, size = of.name, of.shape[0]
        i, j = self.index(size), self.index(size)
        rows = [f"{name}[{i}], {name}[{j}] = {name}[{j}], {name}[{i}]"] * 3
        rows += [f"{name}[[{i}, {j}]] = {name}[[{j}, {i}]]"]
        rows += [f"{name}[1:], {name}[:-1] = {name}[:-1], {name}[1:]", f"{name}[1:] = {name}[:-1]"]
        rows += [
            f"{name}[:-1] += {name}[1:]",
            f"{name}[:] = {name}[::-1]",
            f"{name}[1:] -= {name}[:-1]",
        ]
        rows += [f"{name}[:-1] = {name}[1:]", f"{name}[::-1] += {name}"]
        if len(of.shape) == 1:
            value = self.bounded(of.dtype, (), 1)
            rows += [
                f"{name}[{i}] = {name}[{j}] = {value}",
                f"{name}[{i}], {name}[{j}] = {value}, {name}[{i}]",
            ]
        elif of.shape[0] == of.shape[1]:
            rows += [
                f"{name}[:] = {name}.T",
                f"{name} += {name}.T",
                f"{name}[:, {i}] = {name}[{j}]",
            ]
        if self.locked and name in self.locked:
            rows = [row for row in rows if not row.startswith(f"{name} ")]
        return self.line(self.rng.choice(rows))
