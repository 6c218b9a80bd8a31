"""PSC8xx: what batches compute in vain."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class AllBranchesRun(Diagnostic, code="PSC805"):
    """A batch runs all branches of a `cond` or `switch` for every row.

    `psc.vmap` makes one program for all rows.  Where rows decide differently, there is no branch to
    skip: all of them are run for all rows, and each row selects its result.  So a branch that
    should save work saves none.  In gradients, arrays that all rows share get a part from each
    branch: where one that a row has not taken has an infinite slope, theirs is NaN (see PSC704).

    * Let one decision hold for all rows: what it depends on gets None in `in_axes`.
    * `psc.map` takes the rows one after the other, and each runs its own branch alone.
    * If running both is meant, `np.where` says so.

    Branches that take up to 100 operations for each element are not reported: reading and writing
    the element takes as long.  Loops, sorts, and products of more than small matrices take more.

    A `while_loop` is not reported: the loop goes on until the last row stops, and those that have
    stopped are computed in vain, but one row after the other would take longer still.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    def settle(w: f32["n n"], x: f32["n"]) -> f32["n"]:
        return psc.cond(np.max(x) > 1, lambda: np.linalg.solve(w, x), lambda: x)


    @psc.kernel
    def rows(w: f32["n n"], xs: f32["b n"]) -> f32["b n"]:
        return psc.vmap(settle, in_axes=(None, 0))(w, xs)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    def settle(w: f32["n n"], x: f32["n"]) -> f32["n"]:
        return psc.cond(np.max(x) > 1, lambda: np.linalg.solve(w, x), lambda: x)


    @psc.kernel
    def rows(w: f32["n n"], xs: f32["b n"]) -> f32["b n"]:
        return psc.map(lambda x: settle(w, x), xs)
    ```
    """

    construct: str
    count: int
    work: str
    lost: float

    def message(self) -> str:
        """What is run."""
        which = "both branches" if self.count == 2 else f"all {self.count} branches"
        return (
            f"{which} of this `{self.construct}` are run for every row of a batch, "
            f"in which each row selects its result"
        )

    def label(self) -> str:
        """What is dear, and why it is run."""
        decides = "predicate" if self.construct == "cond" else "index"
        work = self.work or f"about {self.lost:.0f} operations for each element are in vain"
        return f"the {decides} differs from row to row; {work}"

    def help(self) -> str:
        """What runs one of them."""
        return (
            "decide once for all rows (None in `in_axes` for what decides), or take the rows one "
            "by one with `psc.map`; if both are meant to be run, `np.where` says so"
        )
