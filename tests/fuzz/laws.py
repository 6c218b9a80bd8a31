"""What must hold of every program that the checker accepts.

It verifies, it compiles at all sizes that are tried, and three meanings agree: NumPy's own, by
running the Python; the interpreter's, of the typed program; and XLA's.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pscdsl._src.analysis.verify import verify
from pscdsl._src.checker.check import check_source
from pscdsl._src.checker.results import CheckResult
from pscdsl._src.frontend.definitions import Definition, Excluded
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.program import Function, evaluate
from pscdsl._src.transforms.simplify import simplify
from pscdsl.typing import dims
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.diagnostics import Diagnostic, Severity
from pscdsl.typing.dtypes import DType
from pscdsl.typing.signatures import Choice
from tests.fuzz import reference
from tests.fuzz.model import LARGEST_SIZE, Array, Static, Value
from tests.fuzz.programs import Program
from tests.support.kernels_of import kernels_of

PATH = "generated.py"
NDArray = np.ndarray[Any, Any]


class Broken(Exception):
    """A law does not hold."""


Kind = Literal["rejected", "agrees", "documented", "ill-conditioned", "not run"]
"""What may become of a program: the third differs from NumPy where the manual says so."""


class Documented(Exception):
    """The manual says that NumPy does something else here, or nothing ends."""


@dataclass(frozen=True)
class Outcome:
    """What became of a program."""

    kind: Kind
    codes: tuple[str, ...] = ()
    runs: int = 0


def errors(result: CheckResult) -> list[Diagnostic]:
    """The findings that are errors."""
    return [each for each in result.diagnostics if each.severity is Severity.ERROR]


def examine(program: Program, rng: random.Random, runs: int = 2) -> Outcome:
    """Check a program, and try the laws if it is accepted."""
    result = check_source(program.text, PATH)
    found = errors(result)
    internal = [each for each in result.diagnostics if each.code == "PSC999"]
    if internal:
        raise Broken(f"an internal error: {internal[0].message()}")
    if found:
        return Outcome("rejected", tuple(dict.fromkeys(each.code for each in found)))
    if any(kernel.status != "ok" for kernel in result.kernels):
        raise Broken("not checked, and no error")
    return run(program, rng, runs)


def definition(program: Program) -> Definition:
    """The kernel of a program."""
    return kernels_of(program.text, PATH)[program.main.name]


def run(program: Program, rng: random.Random, runs: int) -> Outcome:
    """The laws, for some of the choices that the signature leaves and some sizes."""
    kernel = definition(program)
    choices = kernel.signature.choices()
    if choices is None:
        return Outcome("not run")
    names = reference.loaded(program.text)
    kind: Kind = "agrees"
    done = 0
    for choice in rng.sample(choices, len(choices))[: max(1, min(3, runs))]:
        try:
            function = kernel.instance(choice)
        except Excluded:
            continue
        verify(function)
        optimised = simplify(function)
        verify(optimised)
        for sizes in sizes_of(function, rng, max(1, runs if len(choices) == 1 else runs // 2)):
            operands = [array(rng, each, sizes) for each in function.body.in_types]
            try:
                if compared(program, names, choice, function, optimised, sizes, operands):
                    kind = "ill-conditioned"
            except Documented:
                kind = "documented"
            done += 1
    return Outcome(kind if done else "not run", runs=done)


def sizes_of(function: Function, rng: random.Random, count: int) -> Iterator[dict[str, int]]:
    """Different sizes that the preconditions admit."""
    seen: list[dict[str, int]] = []
    for _ in range(60):
        sizes = {name: rng.randrange(1, LARGEST_SIZE + 1) for name in function.dims}
        admitted = all(fact.holds(sizes) for fact in function.facts.facts)
        if admitted and sizes not in seen:
            seen.append(sizes)
            yield sizes
            if len(seen) == count:
                return


def array(rng: random.Random, of: ArrayType, sizes: Mapping[str, int]) -> NDArray:
    """An operand of small numbers, all exact."""
    shape = tuple(dims.evaluate(size, sizes) for size in of.shape)
    if min(shape, default=0) < 0:
        raise Broken(f"{of} has a negative size at {dict(sizes)}")
    numbers = np.random.default_rng(rng.randrange(2**32))
    kind = of.dtype.name
    if kind == "bool":
        values: Any = numbers.integers(0, 2, shape)
    elif kind.startswith("u"):
        values = numbers.integers(0, 5, shape)
    elif kind.startswith("i"):
        values = numbers.integers(-4, 5, shape)
    else:
        values = numbers.integers(-16, 17, shape) / 4
        if kind.startswith("c"):
            values = values + 1j * numbers.integers(-16, 17, shape) / 4
    return np.asarray(values).astype(to_numpy(of.dtype))


def arguments(
    program: Program, names: Mapping[str, Any], choice: Choice, operands: Sequence[NDArray]
) -> list[Any]:
    """The Python arguments that these operands make."""
    statics = {name: static.value for name, static in choice.statics}
    return built(program.main.arguments, names, statics, operands)


def built(
    values: Sequence[Value],
    names: Mapping[str, Any],
    statics: Mapping[str, Any],
    operands: Sequence[NDArray],
) -> list[Any]:
    """The Python arguments of a signature, of records that a module names."""
    remaining = iter(operands)

    def build(value: Value) -> Any:
        if isinstance(value, Static):
            return statics[value.text]
        if isinstance(value, Array):
            return next(remaining)
        parts = [build(item) for _, item in value.fields]
        return names[value.record](*parts) if value.record else tuple(parts)

    return [build(value) for value in values]


def compared(
    program: Program,
    names: Mapping[str, Any],
    choice: Choice,
    function: Function,
    optimised: Function,
    sizes: Mapping[str, int],
    operands: Sequence[NDArray],
) -> bool:
    """Compare the three meanings; whether they differ because the program is ill-conditioned."""
    try:
        args = arguments(program, names, choice, operands)
        wanted = reference.run(names, program.main.name, args)
    except reference.Endless as error:  # nothing else would come to an end either
        raise Documented from error
    except IndexError as error:  # the checker refuses what it knows; the rest is clamped
        raise Documented from error
    except np.linalg.LinAlgError as error:  # NaN, where nothing can be raised
        raise Documented from error
    except ValueError as error:
        if "negative integer powers" in str(error) or "bins must be" in str(error):
            raise Documented from error
        raise Broken(f"NumPy raises {type(error).__name__}: {error}") from error
    except Exception as error:
        raise Broken(f"NumPy raises {type(error).__name__}: {error}") from error
    types = function.body.out_types
    shapes = [tuple(dims.evaluate(size, sizes) for size in each.shape) for each in types]
    with np.errstate(all="ignore"):
        interpreted = evaluate(function, sizes, operands)
    results = {"the interpreter": interpreted, "XLA": compiled(optimised, sizes, operands)}
    for meaning, arrays in results.items():
        for each, of, shape in zip(arrays, types, shapes, strict=True):
            if np.shape(each) != shape or np.asarray(each).dtype != to_numpy(of.dtype):
                raise Broken(f"{meaning}: {np.shape(each)} {each.dtype} is not {of} at {sizes}")
    if [each.shape for each in wanted] != shapes:
        if re.search(r"np\.squeeze\([^=]*\)", program.text):  # what is 1 for this size alone stays
            raise Documented
        raise Broken(f"NumPy's shapes are {[each.shape for each in wanted]}, not {shapes}")
    doubtful = False
    coarsest = max((TOLERANCE[name] for name in dtypes_in(program.text)), default=0.0)
    spread: list[NDArray] | None = None
    for meaning, arrays in results.items():
        for index, of in enumerate(types):
            if close(arrays[index], wanted[index], of.dtype, coarsest, 0.0):
                continue
            if spread is None:
                spread = sensitivity(program, names, choice, operands, wanted)
            if not close(arrays[index], wanted[index], of.dtype, coarsest, spread[index]):
                if casts_negative(program, names, choice, operands):
                    raise Documented
                raise Broken(
                    f"{meaning} differs from NumPy at {dict(sizes)}, {choice}: result {index} is\n"
                    f"{arrays[index]}\nnot\n{wanted[index]}"
                )
            doubtful = True
    return doubtful


def compiled(
    function: Function, sizes: Mapping[str, int], operands: Sequence[NDArray]
) -> Sequence[NDArray]:
    """The results of the compiled program."""
    from pscdsl._src.targets.pipeline import lower_module
    from pscdsl._src.xla.compilation import compile_module

    try:
        executable = compile_module(lower_module(function, sizes))
    except Exception as error:
        raise Broken(f"XLA refuses it at {dict(sizes)}: {error}") from error
    return [np.asarray(each) for each in executable.run(list(operands))]


def dtypes_in(text: str) -> set[str]:
    """The dtypes of floating-point numbers that a program speaks of, as we call them."""
    code = text.split("TABLE = ", 1)[-1]
    code = code.replace("np.float", "f").replace("np.complex", "c").replace("c64", "c64 f32")
    found = {name for name in TOLERANCE if re.search(rf"\b{name}\b", code)}
    return found | ({"bf16"} if "Float" in code else set())


def casts_negative(
    program: Program,
    names: Mapping[str, Any],
    choice: Choice,
    operands: Sequence[NDArray],
) -> bool:
    """Whether negative numbers are cast to an unsigned dtype, where C and NumPy define nothing."""
    if not re.search(r"uint|\bu(8|16|32|64)\b|UInt", program.text):
        return False
    with np.errstate(all="ignore"):
        positive = [_positive(x) for x in operands]
    function = definition(program).instance(choice)
    sizes = dict[str, int]()
    for each, of in zip(positive, function.body.in_types, strict=True):
        sizes |= {
            str(d): n for d, n in zip(of.shape, each.shape, strict=True) if str(d).isidentifier()
        }
    with np.errstate(all="ignore"):
        found = evaluate(function, sizes, positive)
    again = reference.run(names, program.main.name, arguments(program, names, choice, positive))
    types = function.body.out_types
    return all(
        close(a, b, of.dtype, 0.1, 0.0) for a, b, of in zip(found, again, types, strict=True)
    )


def _positive(x: NDArray) -> NDArray:
    if x.dtype.kind == "c":
        return np.asarray(np.abs(x.real) + 1j * x.imag, x.dtype)
    return np.abs(x) if x.dtype.kind in "if" else x


TOLERANCE = {"f16": 2e-2, "bf16": 1e-1, "f32": 2e-4, "f64": 1e-9, "c64": 2e-4, "c128": 1e-9}


def close(found: Any, wanted: Any, dtype: DType, tolerance: float, slack: Any) -> bool:
    """Equal, or for floating-point numbers nearly so."""
    if dtype.name not in TOLERANCE:
        with np.errstate(all="ignore"):
            cast = np.asarray(wanted).astype(to_numpy(dtype))
        return bool(np.all((np.asarray(found) == cast) | (np.asarray(slack) > 0)))
    precise = np.complex128 if dtype.name.startswith("c") else np.float64
    a, b = (np.asarray(x).astype(precise) for x in (found, wanted))
    tolerance = max(tolerance, TOLERANCE[dtype.name])
    scale = tolerance * (1 + np.max(np.abs(b), initial=0.0, where=np.isfinite(b)))
    with np.errstate(all="ignore"):
        same = (np.abs(a - b) <= scale + 100 * slack) | (a == b) | (np.isnan(a) & np.isnan(b))
    return bool(np.all(same))


def sensitivity(
    program: Program,
    names: Mapping[str, Any],
    choice: Choice,
    operands: Sequence[NDArray],
    wanted: Sequence[NDArray],
) -> list[NDArray]:
    """How far each result moves when the operands change by rounding errors."""
    moved = [np.zeros(each.shape) for each in wanted]
    for factor in (1 + 2**-10, 1 - 2**-10):
        shifted = [
            (each * each.dtype.type(factor)).astype(each.dtype)
            if each.dtype.kind in "fcV"
            else each
            for each in operands
        ]
        args = arguments(program, names, choice, shifted)
        try:
            found = reference.run(names, program.main.name, args)
        except Exception:
            continue
        for index, (one, other) in enumerate(zip(found, wanted, strict=True)):
            precise = np.complex128 if other.dtype.kind == "c" else np.float64
            with np.errstate(all="ignore"):
                change = np.abs(one.astype(precise) - other.astype(precise))
            moved[index] = np.maximum(moved[index], np.nan_to_num(change, nan=np.inf))
    return moved
