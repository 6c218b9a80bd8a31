"""PSC8xx: memory that is given in vain."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class DonatedInVain(Diagnostic, code="PSC806"):
    """A donated parameter whose memory no result can take.

    `@psc.kernel(donate=...)` lets results take the memory of arguments.  A result takes the memory
    of one array of its own type, the same dtype and the same sizes; where there are more such
    arrays than results, those that are donated first count.  A parameter that is donated without
    any result for it is not reused, and stays as it is.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel(donate="x")
    def total(x: f32["n"], y: f32["n"]) -> f32:
        return x @ y
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel(donate="x")
    def total(x: f32["n"], y: f32["n"]) -> f32["n"]:
        return x * y
    ```
    """

    parameter: str
    type: str
    results: str

    def message(self) -> str:
        """What is given."""
        return f"`{self.parameter}` is donated, but no result can take its memory"

    def label(self) -> str:
        """The types."""
        return f"{self.type}; the results are {self.results}"

    def help(self) -> str:
        """What to do."""
        return "leave it out of `donate`, or return the new value as an array of the same type"
