"""Parameters whose memory may be reused for results: `@psc.kernel(donate=("state",))`.

An array of a donated parameter gives its memory to a result of the same type, unless another array
has given it memory; an array without such a result is not donated. Types are compared with their
sizes as symbols, so that the source determines the reuse, and it is the same at every call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias, TypeVar

from pscdsl._src.ir.program import Function
from pscdsl._src.language.writes import refused
from pscdsl.typing.array_types import leaves
from pscdsl.typing.codes.performance import DonatedInVain
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic
from pscdsl.typing.signatures import Signature, StaticSpec

T = TypeVar("T")

Donate: TypeAlias = str | int | Sequence[str | int]
"""A parameter by name or position, or several."""


def donated(signature: Signature, donate: Sequence[object]) -> tuple[str, ...]:
    """Return the names of donated parameters, in the order given; a Failure if there is none."""
    found: dict[str, None] = {}
    by_name = {parameter.name: parameter for parameter in signature.parameters}
    positional = [
        parameter.name for parameter in signature.parameters if not parameter.keyword_only
    ]
    for each in donate:
        if not isinstance(each, str | int) or isinstance(each, bool):
            raise refused("`donate` is a parameter's name or position, or several")
        if isinstance(each, int) and not 0 <= each < len(positional):
            many = len(positional)
            raise refused(f"`{signature.name}` has {many} parameters by position, none is {each}")
        name = positional[each] if isinstance(each, int) else each
        if name not in by_name:
            raise refused(f"`{signature.name}` has no parameter `{name}` that could be donated")
        if isinstance(by_name[name].spec, StaticSpec):
            raise refused(f"`{name}` is static: it has no memory that could be donated")
        found[name] = None
    return tuple(found)


def reused(program: Function, names: Sequence[str]) -> dict[int, str]:
    """Return the arrays, by their place among the program's, that give a result their memory."""
    return matched(program, names, program.body.in_types, program.body.out_types)


def matched(
    program: Function, names: Sequence[str], given: Sequence[T], results: Sequence[T]
) -> dict[int, str]:
    """Return the arrays of some parameters that each take the place of an equal result.

    `given` and `results` have what has to be equal of each array, in the order of the program.
    """
    free = Counter(results)
    owners = [name for name, tree in program.parameters for _ in leaves(tree)]
    found: dict[int, str] = {}
    for name in names:
        for place, (owner, each) in enumerate(zip(owners, given, strict=True)):
            if owner == name and free[each] > 0:
                free[each] -= 1
                found[place] = name
    return found


def in_vain(
    program: Function, signature: Signature, donate: Sequence[object]
) -> Iterator[Diagnostic]:
    """Yield findings for donated parameters without any reuse."""
    names = donated(signature, donate)
    used = set(reused(program, names).values())
    trees = dict(program.parameters)
    for parameter in signature.parameters:
        name = parameter.name
        if name in names and name not in used:
            results = ", ".join(dict.fromkeys(str(type_) for type_ in program.body.out_types))
            yield DonatedInVain(
                parameter=name,
                type=str(trees[name]),
                results=results or "none",
                span=program.span if parameter.span is NOWHERE else parameter.span,
            )
