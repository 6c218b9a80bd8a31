"""Parameters that a kernel writes to: `@psc.kernel(writes=("A", "B"))`.

A kernel that writes is a pure program with further results: after its own results, the final
content of each such parameter. Callers store these into the arguments: `kernels/writing.py` in
calls from Python, `frontend/interpreter/writing.py` in calls from other kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from pscdsl.typing.array_types import NONE, TupleType, Type
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import KEY
from pscdsl.typing.python_containers import is_sequence, is_tuple
from pscdsl.typing.signatures import ArraySpec, NoneSpec, Parameter, Signature, Spec, TupleSpec

Writes: TypeAlias = str | Sequence[str]
"""A parameter by name, or several."""


def named(writes: object) -> tuple[Any, ...]:
    """Return the parameters that an option names, one or several, unchecked."""
    return tuple(writes) if is_sequence(writes) else (writes,)


def written(signature: Signature, writes: Sequence[object]) -> tuple[str, ...]:
    """Return the parameters that are written, in their own order; a Failure if they cannot be."""
    by_name = {parameter.name: parameter for parameter in signature.parameters}
    for each in writes:
        if not isinstance(each, str):
            raise refused("`writes` is a parameter's name, or several")
        if each not in by_name:
            raise refused(f"`{signature.name}` has no parameter `{each}` that could be written")
        problem = _problem(by_name[each])
        if problem:
            raise refused(f"`{each}` cannot be declared in `writes`: {problem}")
    return tuple([name for name in by_name if name in writes])


def writable(parameter: Parameter) -> bool:
    """Return whether a parameter can be declared to be written."""
    return not _problem(parameter)


def _problem(parameter: Parameter) -> str:
    """Return why a parameter cannot be written; empty if it can."""
    spec = parameter.spec
    if not isinstance(spec, ArraySpec) or spec.python or spec.dtype is KEY:
        parts = "records, tuples, lists, dicts and keys"
        return f"{spec} is not an array; writing into {parts} is not supported yet"
    if not spec.dims:
        return f"{spec} is a scalar, which nobody can write to"
    if parameter.has_default:
        return "its default would be written, and be another one in the next call"
    return ""


def refused(problem: str) -> Failure:
    """Return the refusal of an option of `psc.kernel`."""
    return Failure(BadArguments(function="psc.kernel", problem=problem))


def functional(signature: Signature, writes: Sequence[object]) -> Signature:
    """Return the signature with the written parameters' types after that of the result.

    Where nothing is returned, they are all that there is, and one alone is in no tuple.
    """
    names = written(signature, writes)
    if not names:
        return signature
    specs = tuple([each.spec for each in signature.parameters if each.name in names])
    own = signature.result
    result: Spec | None
    if own is None:  # the body determines it
        result = None
    elif not isinstance(own, NoneSpec):
        result = TupleSpec((own, *specs))
    else:
        result = specs[0] if len(specs) == 1 else TupleSpec(specs)
    return replace(signature, result=result, writes=names)


def own_type(found: Type | None, count: int) -> Type | None:
    """Return the type of a program's result without its written arrays; `found` has both."""
    if not count or found is None:
        return found
    if isinstance(found, TupleType) and len(found.items) > count:
        return found.items[0]
    return NONE


def own_result(signature: Signature) -> Spec | None:
    """Return the declared result of a function, without the arrays that it writes."""
    found, count = signature.result, len(signature.writes)
    if not count or found is None:
        return found
    if isinstance(found, TupleSpec) and len(found.items) > count:
        return found.items[0]
    return NoneSpec()


def split(found: Any, count: int) -> tuple[Any, Sequence[Any]]:
    """Return the result and the `count` arrays that the functional form returned together."""
    if not is_tuple(found):
        return None, (found,)
    parts: tuple[Any, ...] = found
    return (parts[0], parts[1:]) if len(parts) > count else (None, parts)
