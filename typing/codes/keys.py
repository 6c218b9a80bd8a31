"""PSC6xx: random keys."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class KeyReused(Diagnostic, code="PSC601"):
    """A random key is used again after it has been consumed."""

    name: str
    """The key as the code calls it, or empty."""
    before: str
    """The first use: `consumed`, `folded`; empty if there was none."""
    now: str
    """The second use."""
    rewrite: str
    again: bool = False
    """Whether both uses are at one place: in a loop, in a function that is called twice."""
    next_step: bool = False
    """Whether the second use is in the next step of a loop, and before the first in the text."""

    def message(self) -> str:
        key = f"key `{self.name}`" if self.name else "a key"
        if self.again:
            return f"{key} is {self.now} here more than once"
        if not self.before:
            return f"{key} is {self.now}, but holds one key several times"
        if self.before == self.now == "folded":
            return f"{key} is folded again, with an integer that may be the same"
        if self.before == self.now:
            return f"{key} is {self.now} twice"
        return f"{key} is {self.now} after it was {self.before}"

    def label(self) -> str:
        if self.again:
            return f"{self.now} in each step or call"
        if self.next_step:
            return f"{self.now} here"
        return f"{self.now} again" if self.before == self.now else f"{self.now} here"

    def help(self) -> str:
        return self.rewrite


class NotOneKey(Diagnostic, code="PSC602"):
    """A function of `psc.random` gets something other than one key."""

    function: str
    found: str

    def message(self) -> str:
        return f"`{self.function}` takes one key first, not {self.found}"

    def help(self) -> str:
        if self.found.startswith("Key["):
            return f"`psc.map(lambda k: {self.function}(k, …), keys)`, or one of them: `keys[0]`"
        return "declare a parameter `key: psc.Key`, or make one: `psc.random.key(0)`"


class SeedReused(Diagnostic, code="PSC603"):
    """A random key is made again from the same constant, and used again."""

    seed: str
    """The constant as the code writes it; empty if the seed is no constant."""
    again: bool = False
    """Whether it is made at one place: in a loop, in a function that is called twice."""

    def message(self) -> str:
        key = f"the key of seed {self.seed}" if self.seed else "a key of the same seed"
        if self.again:
            return f"each step uses {key}, and draws the same numbers"
        return f"{key} is used a second time, and gives the same numbers"

    def label(self) -> str:
        return "the same in each step" if self.again else "used again"

    def help(self) -> str:
        return "make one key, and split it for each use"


class KeyOfAllDevices(Diagnostic, code="PSC604"):
    """Numbers for the pieces of all devices are drawn from one key, and so are the same."""

    axis: str

    def message(self) -> str:
        return (
            f"the key is the same on all devices along `{self.axis}`, and so are the numbers that "
            "it draws for their pieces"
        )

    def help(self) -> str:
        return f'`psc.random.fold_in(key, psc.axis_index("{self.axis}"))` is another key on each'
