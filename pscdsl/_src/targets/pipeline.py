"""All that is done with a typed program on its way to StableHLO, in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias

from pscdsl._src.ir.program import Block, Function, has_effects
from pscdsl._src.primitives.control import substitute_block
from pscdsl._src.primitives.factorisations import Cholesky, Lu, TriangularSolve
from pscdsl._src.primitives.indexing import Scatter
from pscdsl._src.targets.cpu import linalg
from pscdsl._src.targets.cpu.table import CPU
from pscdsl._src.targets.forms import Context, switched_off
from pscdsl._src.targets.rewriting import Target, rewritten
from pscdsl._src.targets.scatters import last_update
from pscdsl._src.xla.emit.emit import emit_module
from pscdsl.typing.assumptions import Assumptions

# Modules for any device: the primitives' own rules, and forms that gain everywhere.


PORTABLE: Final = Target(
    "portable",
    rewrites={
        Cholesky: (linalg.portable_cholesky,),
        TriangularSolve: (linalg.portable_solve,),
        Lu: (linalg.written_out_lu,),
        Scatter: (last_update,),
    },
)


# The steps.


# Sizes become numbers, before anything else is done with a program.


def specialise(function: Function, sizes: Mapping[str, int]) -> Function:
    """Specialise a function to these sizes; its callees are specialised when emitted."""
    if not function.dims:
        return function
    body = substitute_block(function.body, sizes)
    return replace(function, dims=(), facts=Assumptions(), body=body, origins={})


Check: TypeAlias = Callable[[str, Block], None]
"""A function that gets the name of a step and its result."""


# All steps, in order.


VERIFY: Final = "PSCDSL_VERIFY"
"""The environment variable by which programs are verified after every step."""


def lower_module(
    function: Function,
    sizes: Mapping[str, int],
    *,
    donate: Sequence[int] = (),
    target: Target = CPU,
) -> Any:
    """Return the module of a function at these sizes, for a target.

    The memory of the parameters in `donate` may be reused for results.
    """
    if has_effects(function.body):
        target = target.keeping_effects()
    return emit_module(function, sizes, Pipeline(target), donate)


class Pipeline:
    """The steps before emission, for one module and one target."""

    def __init__(self, target: Target) -> None:
        self.target = _choose(target, switched_off())
        self.translations = self.target.translations
        self.routines = self.target.routines
        self.host_calls = self.target.host_calls
        self._verifies = os.environ.get(VERIFY, "") not in ("", "0")

    def prepared(
        self, function: Function, sizes: Mapping[str, int], *, in_loop: bool, nested: bool
    ) -> Block:
        """Return the body of a function after all steps, called where that is."""
        self.target.require(function.body)
        program = specialise(function, sizes)
        check: Check = partial(_verify, program) if self._verifies else _nothing
        check("specialise", program.body)
        here = Context(in_loop, nested)
        body = rewritten(self.target, program.body, here, check)
        check("rewrites", body)
        return body


@lru_cache(maxsize=16)
def _choose(target: Target, without: frozenset[str]) -> Target:
    return target.without(without)


def _nothing(name: str, block: Block) -> None:
    """Programs are not verified."""


def _verify(function: Function, name: str, block: Block) -> None:
    from pscdsl._src.analysis.verify import VerificationError, verify  # only where it is asked for

    program = replace(
        function,
        name=f"{function.name} after {name}",
        dims=(),
        facts=Assumptions(),
        body=block,
        parameters=(),
        result=None,
    )
    try:
        verify(program)
    except VerificationError as error:
        raise AssertionError(f"internal error after {name}: {error}") from error
