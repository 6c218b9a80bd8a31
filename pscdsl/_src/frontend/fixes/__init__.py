"""Fixes: proposed changes for each kind of finding, built from the text around its place.

To make a kind fixable, write a function from a `Place` to the fixes it may have, the likeliest
first, and enter it in `BUILDERS`. A finding whose help names an `assert` needs no builder: adding
the assertion is its fix. Fixes are proposals: `pscdsl check --fix` makes one only if the check of
the changed text confirms it (see `checker.fixing`), so a builder need not repeat the checker's
work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pscdsl._src.frontend.fixes.casts import (
    accumulator_too_narrow,
    argument_dtype,
    branch_on_array,
    dtypes_differ,
    integers_make_an_array,
    negative_power,
    precondition,
    return_dtype,
    scalar_does_not_fit,
)
from pscdsl._src.frontend.fixes.library import (
    array_leaves_program,
    bad_arguments,
    data_dependent_shape,
    inner_sizes_differ,
    loop_over_array,
    no_such_attribute,
    not_callable,
    not_checked,
    outgrown_update,
    shapes_do_not_broadcast,
    side_effect,
    unknown_elsewhere,
    unknown_name,
)
from pscdsl._src.frontend.fixes.place import LocatedTree, Place
from pscdsl._src.frontend.fixes.updates import mutation
from pscdsl._src.frontend.text.source import Source
from pscdsl.typing.codes.element_types import (
    AccumulatorTooNarrow,
    ArgumentDtype,
    DtypesDiffer,
    IntegersMakeAnArray,
    NegativePowerOfInteger,
    ReturnDtype,
    ScalarDoesNotFit,
)
from pscdsl.typing.codes.language import (
    ArrayLeavesProgram,
    BadArguments,
    BranchOnArray,
    LoopOverArray,
    NoSuchAttribute,
    NotCallable,
    UnknownName,
)
from pscdsl.typing.codes.limits import (
    InternalError,
    KernelNotChecked,
    UnknownFunction,
    UnknownValue,
)
from pscdsl.typing.codes.purity import Mutation, SideEffect
from pscdsl.typing.codes.shapes import DataDependentShape, OutgrownUpdate, ShapesDoNotBroadcast
from pscdsl.typing.codes.shapes_of_arguments import InnerSizesDiffer
from pscdsl.typing.diagnostics import Diagnostic, Fix

BUILDERS: Mapping[type[Diagnostic], Callable[[Place[Any]], Iterator[Fix]]] = {
    AccumulatorTooNarrow: accumulator_too_narrow,
    ArgumentDtype: argument_dtype,
    ArrayLeavesProgram: array_leaves_program,
    BadArguments: bad_arguments,
    BranchOnArray: branch_on_array,
    DataDependentShape: data_dependent_shape,
    DtypesDiffer: dtypes_differ,
    InnerSizesDiffer: inner_sizes_differ,
    IntegersMakeAnArray: integers_make_an_array,
    KernelNotChecked: not_checked,
    LoopOverArray: loop_over_array,
    Mutation: mutation,
    NegativePowerOfInteger: negative_power,
    NoSuchAttribute: no_such_attribute,
    NotCallable: not_callable,
    OutgrownUpdate: outgrown_update,
    ReturnDtype: return_dtype,
    ScalarDoesNotFit: scalar_does_not_fit,
    ShapesDoNotBroadcast: shapes_do_not_broadcast,
    SideEffect: side_effect,
    UnknownFunction: unknown_elsewhere,
    UnknownName: unknown_name,
    UnknownValue: unknown_elsewhere,
}


def with_fixes(
    findings: Sequence[Diagnostic], source_of: Callable[[str], Source | None]
) -> list[Diagnostic]:
    """Return the findings with their fixes; `source_of` gives a file's source by its path."""
    trees: dict[str, LocatedTree | None] = {}

    def tree_of(path: str) -> LocatedTree | None:
        if path not in trees:
            source = source_of(path)
            trees[path] = None if source is None else LocatedTree(source)
        return trees[path]

    diagnostics: list[Diagnostic] = []
    for finding in findings:
        try:
            diagnostics.append(finding.replaced(fixes=tuple(_fixes(finding, tree_of))))
        except Exception as error:  # the finding is reported, and so is our mistake
            diagnostics.append(finding)
            what = f"no fix could be made for {finding.code}: {type(error).__name__}: {error}"
            diagnostics.append(InternalError(what=what, span=finding.span))
    return diagnostics


def _fixes(finding: Diagnostic, tree_of: Callable[[str], LocatedTree | None]) -> Iterator[Fix]:
    build = BUILDERS.get(type(finding))
    if build is not None:
        tree = tree_of(finding.span.path)
        if tree is not None:
            yield from build(Place(finding, tree))
    if finding.assertion() is not None:
        tree = tree_of(finding.span.frames()[-1].path)
        if tree is not None:
            yield from precondition(finding, tree)
