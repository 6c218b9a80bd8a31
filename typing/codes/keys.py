"""PSC6xx: random keys."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class KeyReused(Diagnostic, code="PSC601"):
    """A random key is used again after it has been consumed.

    Drawing from a key or splitting it consumes it: the same key gives the same numbers, so
    numbers that are meant to be independent would be equal.  `psc.random.split` gives new keys in
    the place of one.  A loop's body that consumes a key from outside would consume it in every
    step: split it outside and loop over the keys, or carry the key along and split it in each step.

    `psc.random.fold_in` derives a key from a key and an integer and does not consume it: it may be
    called again with an integer that is known to be another one (another number, the counter of a
    loop), but the key itself is then for folding alone.

    Keys of seeds that may be equal count as one key.  Arguments, and the elements of an array that
    is one, are taken for different seeds and different keys; a call that gives one key or seed
    twice is refused where it is made.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import Key, f32


    @psc.kernel
    def walk(key: Key, x: f32["n"]) -> f32["n"]:
        x = x + psc.random.normal(key, x.shape)
        return x + psc.random.normal(key, x.shape)
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import Key, f32


    @psc.kernel
    def walk(key: Key, x: f32["n"]) -> f32["n"]:
        first, second = psc.random.split(key)
        x = x + psc.random.normal(first, x.shape)
        return x + psc.random.normal(second, x.shape)
    ```
    """

    name: str
    """The key as the code calls it, or empty."""
    before: str
    """What was done with it first: `consumed`, `folded`; empty if nothing was."""
    now: str
    """What is done with it again."""
    rewrite: str
    again: bool = False
    """Whether both are done at one place: in a loop, in a function that is called twice."""

    def message(self) -> str:
        """Which key, and what is done twice."""
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
        """What the place does."""
        if self.again:
            return f"{self.now} in each step or call"
        return f"{self.now} again" if self.before == self.now else f"{self.now} here"

    def help(self) -> str:
        """What to write instead."""
        return self.rewrite


class NotOneKey(Diagnostic, code="PSC602"):
    """A function of `psc.random` gets something other than one key.

    The first argument is a key: a parameter of type `psc.Key`, or what `psc.random.key`,
    `psc.random.split` or `psc.random.fold_in` gave.  Each key of an array is used on its own.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def noisy(x: f32["n"]) -> f32["n"]:
        return x + psc.random.normal(0, x.shape)
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import Key, f32


    @psc.kernel
    def noisy(key: Key, x: f32["n"]) -> f32["n"]:
        return x + psc.random.normal(key, x.shape)
    ```
    """

    function: str
    found: str

    def message(self) -> str:
        """What was given."""
        return f"`{self.function}` takes one key first, not {self.found}"

    def help(self) -> str:
        """What to write instead."""
        if self.found.startswith("Key["):
            return f"`psc.map(lambda k: {self.function}(k, …), keys)`, or one of them: `keys[0]`"
        return "declare a parameter `key: psc.Key`, or make one: `psc.random.key(0)`"
