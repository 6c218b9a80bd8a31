"""Random branches and loops of plain NumPy, and jumps out of them."""

from __future__ import annotations

from tests.fuzz.numpy_stores import Stores
from tests.fuzz.numpy_values import Array, Counter, less


class Statements(Stores):
    """Writes branches and loops of random statements."""

    # Branches.

    def branch(self) -> bool:
        """An `if` with what may go with it."""
        if self.nested > 2:
            return False
        self.line(f"if {self.condition()}:")
        with self.block():
            self.body()
        for _ in range(self.rng.choice((0, 0, 0, 1))):
            self.line(f"elif {self.condition()}:")
            with self.block():
                self.body()
        if self.chance(0.5):
            self.line("else:")
            with self.block():
                self.body()
        return True

    def joined(self) -> bool:
        """A name that each of two branches binds."""
        shape, name = self.shape(), self.name()
        if self.nested > 2:
            return False
        own = True
        self.line(f"if {self.condition()}:")
        for last in (False, True):
            with self.block():
                if self.chance(0.3):
                    self.body()
                same = [each for each in self.vectors() if each.shape == shape]
                same = [each for each in same if each.dtype == "f64"]
                if same and self.chance(0.6):
                    other = self.rng.choice(same)
                    text, own = other.name + self.rng.choice(("", "", "[::-1]")), own and other.own
                else:
                    text = self.new("f64", shape)
                self.line(f"{name} = {text}")
                if self.chance(0.2):
                    self.line(f"{name}[:1] = {self.literal('f64')}")
            if not last:
                self.line("else:")
        self.scope.arrays.append(Array(name, "f64", shape, own))
        return True

    def leave(self) -> bool:
        """A jump out of a loop or a function."""
        options: list[str] = ["break", "continue"] if self.loops else []
        if self.leaves is not None and (self.nested or self.loops):
            options.append("return")
        if not options:
            return False
        jump = self.rng.choice(options)
        if jump == "return" and self.leaves is not None:
            jump = f"return {self.leaves()}"
        self.line(f"if {self.condition()}:")
        with self.block():
            if self.chance(0.4):
                self.statements(1)
            return self.line(jump)

    # Loops.

    def counted(self) -> bool:
        """A loop over a range."""
        if self.nested > 2:
            return False
        i, rng = self.name("ij"), self.rng
        size = rng.choice(
            [each.shape[0] for each in self.vectors() if "?" not in each.shape] or ["n"]
        )
        heads = [(f"range({size})", size)] * 3 + [(f"range({less(size)})", less(size))] * 2
        heads += [(f"range(1, {size})", size), (f"range({less(size)}, -1, -1)", size)]
        heads += [(f"range(0, {size}, 2)", size), (f"reversed(range({size}))", size)]
        heads += [("range(2)", "2"), ("range(3)", "3"), ("range(17)", "17")]
        heads += [(f"range({c.name})", c.bound) for c in self.scope.counters]
        if any(each.name == "k" for each in self.scope.arrays):
            heads.append(("range(k % 4)", "3"))
        text, size = rng.choice(heads)
        self.line(f"for {i} in {text}:")
        return self.looped(Counter(i, size))

    def looped(self, *names: Array | Counter) -> bool:
        """The body of a loop, and its `else`."""
        with self.block(*names, loop=True):
            self.body()
        if self.chance(0.12):
            self.line("else:")
            with self.block():
                self.body()
        return True

    def over(self) -> bool:
        """A loop over arrays."""
        rng = self.rng
        known = [each for each in self.vectors() if "?" not in each.shape]
        if not known or self.nested > 2:
            return False
        of = rng.choice(known)
        others = [each for each in known if each.shape[0] == of.shape[0]]
        other = rng.choice(others)
        i, a, b = self.name("ij"), self.name("rst"), self.name("rst")
        item = Array(a, of.dtype, of.shape[1:], of.own)
        second = Array(b, other.dtype, other.shape[1:], other.own)
        counter = Counter(i, of.shape[0])
        heads: list[tuple[str, list[Array | Counter]]] = [
            (f"{a} in {of.name}", [item]),
            (f"{a} in {of.name}[::-1]", [item]),
            (f"{a} in reversed({of.name})", [item]),
            (f"{i}, {a} in enumerate({of.name})", [counter, item]),
            (f"{a}, {b} in zip({of.name}, {other.name})", [item, second]),
            (
                f"{i}, ({a}, {b}) in enumerate(zip({of.name}, {other.name}))",
                [counter, item, second],
            ),
            (f"{i}, {b} in zip(range({of.shape[0]}), {other.name})", [counter, second]),
        ]
        head, names = rng.choice(heads)
        self.line(f"for {head}:")
        return self.looped(*names)

    def waiting(self) -> bool:
        """A `while` loop, which counts."""
        rng = self.rng
        if self.nested > 2:
            return False
        t, size = self.name("t"), self.shape()[0]
        kind = rng.randrange(4)
        if kind == 0 and self.at_least(size):
            u = self.name("t")
            self.line(f"{t} = 0")
            self.line(f"{u} = {less(size)}")
            self.line(f"while {t} < {u}:")
            with self.block(Counter(t, size), Counter(u, size), loop=True):
                self.loops, around = 0, self.loops  # without a `continue` to skip the rest
                self.statements(1)
                self.loops = around
                self.line(f"{t} += 1")
                return self.line(f"{u} -= 1")
        if kind == 1:
            self.line(f"{t} = {self.literal('f64')}")
            self.line(f"while {t} < 5.0:")
            with self.block(Array(t, "f64", ()), loop=True):
                self.locked, outer = self.locked | {t}, self.locked
                self.line(f"{t} += {rng.choice(('1.0', '2.0', '3.0'))}")
                self.body()
                self.locked = outer
            return True
        self.line(f"{t} = 0")
        more = self.condition(1)
        self.line("while True:" if kind == 2 else f"while {t} < 3 and ({more}):")
        with self.block(Counter(t, "4"), loop=True):
            self.line(f"{t} += 1")
            if kind == 2:
                self.line(f"if {t} > 3 or {more}:")
                self.line("    break")
            self.body()
        return True
