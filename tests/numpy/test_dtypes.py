"""The dtype, the shape and the values of every function of NumPy's, against NumPy's own.

Each function is given each dtype, and arrays beside numbers and lists.  It gives NumPy's dtype, but
for the differences that are listed in DIFFERENCES.md, or refuses; where NumPy raises, it refuses.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.numpy.shorthand import listed
from pscdsl.typing.codes.element_types import (
    DtypeNotAccepted,
    DtypesDiffer,
    IntegersMakeAnArray,
    ScalarDoesNotFit,
)
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import DataDependentShape
from pscdsl.typing.codes.shapes_of_arguments import TooFewElements
from pscdsl.typing.diagnostics import Failure
from tests.support.numpy_differential import at_least, check, meaning, refused, theirs
from tests.support.numpy_harness import run, run_symbolic

pytestmark = pytest.mark.quick_code(but=4)

CODES = ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16")
BESIDE = ("?", "i1", "u1", "i4", "u4", "i8", "u8", "f4", "f8", "c8")

NAMES = sorted(
    name
    for name, found in MEANINGS.items()
    if name.startswith("numpy.") and isinstance(found, Meaning)
    if name.count(".") > 1 or hasattr(np, name.removeprefix("numpy."))
)
"""Those that the NumPy at hand has."""

ELSEWHERE = {"apply_along_axis", "apply_over_axes", "empty_like", "ndarray.view"}
"""Functions of functions, and what has no values."""
OTHER_VALUES = set(
    # signs of vectors, a choice of NumPy's, what wraps around, overflows in f16 or is its precision
    "linalg.eig linalg.eigh linalg.eigvals argpartition trapezoid unwrap ldexp spacing".split()
)
ACCEPTED = {"linalg.cholesky", "linalg.inv", "linalg.tensorinv"}
"""What NumPy refuses for the sake of values."""

ONE: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "take": lambda a: (a, np.array([0, 1])),
    "take_along_axis": lambda a: (a, np.zeros(a.shape, np.int32)),
    **dict.fromkeys(("repeat", "tile"), lambda a: (a, 2)),
    **dict.fromkeys(("roll", "partition", "argpartition", "delete", "pad"), lambda a: (a, 1)),
    **dict.fromkeys(("quantile", "nanquantile"), lambda a: (a, 0.5)),
    **dict.fromkeys(("percentile", "nanpercentile"), lambda a: (a, 50)),
    "expand_dims": lambda a: (a, 0),
    "reshape": lambda a: (a, (-1,)),
    "resize": lambda a: (a, (2,)),
    **dict.fromkeys(("moveaxis", "swapaxes"), lambda a: (a, 0, -1)),
    "rollaxis": lambda a: (a, -1),
}
"""The arguments of functions of one array that need more."""


def _array(code: str, shape: tuple[int, ...]) -> Any:
    count = int(np.prod(shape))
    return (np.arange(1, count + 1) % 5 + 1).reshape(shape).astype(code)


def _call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The results, or why there are none."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return error


def _leaves(results: Any) -> list[Any]:
    items = listed(results)
    return [np.asarray(results)] if items is None else [x for each in items for x in _leaves(each)]


def _agree(name: str, code: str, wanted: Any, found: Any) -> str | None:
    """What is wrong with results for arrays of a dtype, if anything is."""
    if isinstance(found, Failure):
        return None
    if isinstance(found, Exception):
        return f"raises {found!r}"
    short = name.removeprefix("numpy.")
    if isinstance(wanted, Exception):
        return None if short in ACCEPTED else f"is accepted, NumPy raises {wanted}"
    for one, other in zip(_leaves(wanted), _leaves(found), strict=True):
        if one.shape != other.shape:
            return f"has shape {other.shape}, not {one.shape}"
        if not _same_dtype(short, np.dtype(code), one.dtype, other.dtype):
            return f"has dtype {other.dtype}, not {one.dtype}"
        if one.dtype.kind in "biufc" and short not in OTHER_VALUES:
            rtol = 1e-2 if other.dtype.itemsize < 4 else 1e-3
            pair = (one.astype(complex), other.astype(complex))
            if short == "linalg.cond":  # of a singular matrix it is any number beyond accuracy
                pair = (np.minimum(one, 1e7), np.minimum(other, 1e7))
            if not np.allclose(*pair, rtol=rtol, atol=1e-3, equal_nan=True):
                return f"is {other.tolist()}, not {one.tolist()}"
    return None


def _same_dtype(short: str, given: Any, wanted: Any, found: Any) -> bool:
    """Whether a dtype is NumPy's, or what DIFFERENCES.md says instead."""
    if wanted == found or short in ("linalg.eig", "linalg.eigvals"):
        return True
    if wanted.kind != found.kind:
        return False
    if wanted.kind in "fc":  # the precision of the arrays, f64 for integers
        inexact = given if given.kind in "fc" else np.dtype("f8")
        return found.type(0).real.dtype in (inexact.type(0).real.dtype, np.dtype("f4"))
    return False


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_functions_of_one_array(name: str) -> None:
    ours, short = meaning(name), name.removeprefix("numpy.")
    if short in ELSEWHERE:
        return
    wrong: list[str] = []
    for code in CODES:
        for shape in ((4,), (3, 3)):
            args = ONE.get(short, lambda a: (a,))(_array(code, shape))
            try:
                ours.signature.bind(*((None, *args) if ours.wants_builder else args))
            except TypeError:
                return
            problem = _agree(name, code, _call(theirs, name, *args), _call(run, name, *args))
            wrong += [f"{name} of {code}{shape} {problem}"] if problem else []
    assert not wrong


Template = Callable[[Any, Any], "tuple[Any, ...] | dict[str, Any]"]
"""An array and what is beside it, as arguments; the array comes first where they are keywords."""

EITHER: Sequence[Template] = (lambda a, b: (a, b), lambda a, b: (b, a))
BOTH: Sequence[Template] = (lambda a, b: ([a, b],), lambda a, b: ([b, a],))
_CHOICE = np.array([True, False, True])


def _named(*names: str) -> Sequence[Template]:
    return [lambda a, b, name=name: {name: b} for name in names]  # type: ignore[misc]


TWO: dict[str, Sequence[Template]] = {
    "append": EITHER,
    "average": (*EITHER[:0], *_named("weights")),
    "array": [lambda a, b: ([a[0], b],)],
    **dict.fromkeys("block concatenate hstack stack vstack dstack column_stack".split(), BOTH),
    "choose": [lambda a, b: (np.array([0, 1, 1]), [a, b])],
    "clip": [lambda a, b: (a, b, None), lambda a, b: (a, None, b), lambda a, b: (b, a, None)],
    "cov": (*EITHER, *_named("fweights", "aweights")),
    "diff": _named("prepend", "append"),
    "ediff1d": _named("to_end", "to_begin"),
    "einsum": [lambda a, b: ("i,->i", a, b)],
    "full_like": EITHER[:1],
    "gradient": EITHER[:1],
    "insert": [lambda a, b: (a, 0, b), lambda a, b: (b, 0, a)],
    "interp": [lambda a, b: (a, [1, 2, 3], b), lambda a, b: (b, [1, 2, 3], a)],
    "linspace": [lambda a, b: (a, b, 4), lambda a, b: (b, a, 4)],
    **dict.fromkeys(
        "add.reduce max maximum.reduce nanmax nansum prod sum".split(), _named("initial")
    ),
    "nan_to_num": _named("nan"),
    "pad": [lambda a, b: (a, 1, "constant"), lambda a, b: {"pad_width": 1, "constant_values": b}],
    "polyint": [lambda a, b: (a, 1, b)],
    "select": [
        lambda a, b: ([_CHOICE], [a], b),
        lambda a, b: ([_CHOICE], [b], a),
        lambda a, b: ([_CHOICE, _CHOICE], [a, b]),
    ],
    "trapezoid": (*EITHER[:1], *_named("dx")),
    "var": _named("mean", "ddof"),
    "where": [lambda a, b: (_CHOICE, a, b), lambda a, b: (_CHOICE, b, a)],
    **dict.fromkeys("linalg.lstsq linalg.solve linalg.tensorsolve cross linalg.cross".split(), ()),
}
"""How functions get a number or a list beside an array; without an entry, in either's place."""

NUMBERS: tuple[Any, ...] = (3, 30, [1, 2, 4], True, [True, True, True], 0.5, [0.5, 1.5, 2.5], 1j)


def _templates(name: str) -> Sequence[Template]:
    ours, short = meaning(name), name.removeprefix("numpy.")
    if short in TWO or short in ELSEWHERE:
        return TWO.get(short, ())
    names = [each for each in ours.signature.parameters if each != "here"][:2]
    pair = len(names) == 2 and all(each in ours.together | ours.alone for each in names)
    return EITHER if pair and short not in ("bincount", "take", "take_along_axis") else ()


@pytest.mark.parametrize("name", [name for name in NAMES if _templates(name)])
@pytest.mark.filterwarnings("ignore")
def test_arrays_beside_numbers_and_lists(name: str) -> None:
    wrong: list[str] = []
    for code in BESIDE:
        a = _array(code, (3,))
        for template in _templates(name):
            for number in (a.copy(), *NUMBERS):
                given = template(a, number)
                args, kwargs = ((a,), given) if isinstance(given, dict) else (given, {})
                wanted, found = (_call(f, name, *args, **kwargs) for f in (theirs, run))
                problem = _agree(name, code, wanted, found)
                wrong += [f"{name} of {code} and {number}: {given} {problem}"] if problem else []
    assert not wrong


@pytest.mark.parametrize("code", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("name", ["numpy.gcd", "numpy.lcm"])
def test_divisors_at_the_ends_of_a_dtype(name: str, code: str) -> None:
    low, high = np.iinfo(code).min, np.iinfo(code).max
    ends = np.array([low, low + 1, low + 2, high - 1, high, 0, 1, 2, 3, 6, 7, 12], code)
    check(name, ends[:, None], ends, compiled=True)
    check(name, 2, ends)


@pytest.mark.parametrize("name", ["numpy.cov", "numpy.corrcoef"])
def test_the_covariance_of_one_variable_has_no_axes(name: str) -> None:
    row = np.array([[1.0, 2.0, 5.0]])
    for given in (row, row[0]):
        check(name, given)
    check(name, row.T, rowvar=False)
    check(name, row, row[0])
    rows = np.array([[1.0, 2.0, 5.0], [2.0, 1.0, 7.0], [3.0, 3.0, 2.0], [1.0, 8.0, 1.0]])
    check(name, rows, facts=at_least(4))
    finding = refused(TooFewElements, name, rows, symbolic=True)
    assert finding.help() == "add `assert n4 >= 2`"


def test_powers_and_derivatives_of_small_integers_in_64_bits() -> None:
    x = np.array([7, 200, 255], np.uint8)
    check("numpy.vander", x)
    check("numpy.polyder", x)
    assert run("numpy.polyder", x, m=0).dtype == np.uint8
    assert run_symbolic("numpy.vander", x).dtype == np.int64
    assert run("numpy.vander", [1, 2, 3]).dtype == np.int64


DISCRETE = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
BETWEEN = ("linear", "midpoint", "hazen", "weibull", "averaged_inverted_cdf")


@pytest.mark.parametrize("method", [*DISCRETE, *BETWEEN])
@pytest.mark.parametrize("name", ["numpy.quantile", "numpy.nanquantile"])
def test_quantiles_of_bools(name: str, method: str) -> None:
    x = np.array([True, False, True, False, False])
    if method in DISCRETE:
        found = run(name, x, 0.6, method=method)
        assert found.dtype == np.bool_
        assert found == theirs(name, x, 0.6, method=method)
    else:
        refused(DtypeNotAccepted, name, x, 0.6, method=method)


def test_what_numpy_raises_for_is_refused() -> None:
    bools, f = np.array([True, False, True]), np.array([1.0, 2.0, 4.0])
    refused(DtypeNotAccepted, "numpy.ediff1d", bools)
    refused(DtypeNotAccepted, "numpy.conj", bools)
    refused(DtypeNotAccepted, "numpy.clip", bools)
    refused(DtypeNotAccepted, "numpy.var", bools, mean=True)
    refused(DtypeNotAccepted, "numpy.ldexp", f, np.array([1], np.uint64))
    refused(DtypeNotAccepted, "numpy.cov", f, fweights=f)
    refused(DataDependentShape, "numpy.ix_", bools)
    refused(BadArguments, "numpy.nan_to_num", f.astype(complex), nan=1j)
    refused(BadArguments, "numpy.gradient", f[:, None] * f, f)
    refused(BadArguments, "numpy.gradient", f, [True, False, True])
    refused(BadArguments, "numpy.insert", [1, 2], 0, f)
    refused(BadArguments, "numpy.finfo", f)


@pytest.mark.parametrize("short", ["zeros_like", "ones_like", "atleast_2d", "copy"])
def test_a_list_in_the_place_of_an_array(short: str) -> None:
    name = f"numpy.{short}"
    found = run(lambda x: meaning(name).apply(x.builder, ([1, 2.5],), {}), np.zeros(1))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, theirs(name, [1, 2.5]))


def test_a_list_fills_a_prototype() -> None:
    check("numpy.full_like", np.zeros(2), [1, 2.5], symbolic=False)
    check("numpy.full_like", np.zeros(2, complex), [1, 2.5], symbolic=False)


def test_the_dtype_of_a_prototype_is_kept() -> None:
    def filled(number: Any) -> Any:
        def program(x: Any) -> Any:
            counted = meaning("numpy.arange").apply(x.builder, (3,), {})
            return meaning("numpy.full_like").apply(x.builder, (counted, number), {})

        return run(program, np.zeros(1))

    assert filled(True).dtype == np.int64
    with pytest.raises(Failure):
        filled(0.5)


def test_lists_of_integers_say_what_to_write() -> None:
    x = np.array([1, 2, 3], np.uint8)
    finding = refused(IntegersMakeAnArray, "numpy.append", x, 1)
    wanted = "write `np.uint8(…)` of a number, `np.array(…, dtype=np.uint8)` of a list, "
    wanted += "or cast the array with `.astype(psc.i64)`"
    assert finding.help() == wanted
    check("numpy.append", x, np.uint8(1))
    check("numpy.append", x.astype(np.int64), 1)
    check("numpy.diff", x, append=np.uint8(255))
    check("numpy.insert", x, 1, [7, 8])


@pytest.mark.parametrize("code", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_places_in_arrays_larger_than_their_dtype_counts(code: str) -> None:
    x, places = np.arange(300.0), np.array([1, 5, 120, 127]).astype(code)
    signed = places if code.startswith("u") else np.array([-1, -128, 5, 127], code)
    check("numpy.take", x, signed, mode="wrap", compiled=True)
    check("numpy.take", x, signed, mode="clip", compiled=True)
    check("numpy.take", x, places)
    for shape in ((300, 300), (65536, 65536)):
        check("numpy.ravel_multi_index", (places, places), shape)
        check("numpy.unravel_index", places, shape)
    assert run("numpy.unravel_index", places, (300, 300))[0].dtype == np.int64
    assert run("numpy.ravel_multi_index", (places, places), (300, 300)).dtype == np.int64


def test_places_from_the_middle_of_u64_on_count_from_the_end() -> None:
    places = np.array([2**64 - 1, 2**64 - 300, 3], np.uint64)
    check("numpy.take", np.arange(300.0), places)
    check("numpy.take", np.arange(300.0), places, mode="clip")
    refused(DtypeNotAccepted, "numpy.choose", np.array([1, 0], np.uint64), [[1, 2], [3, 4]])
    refused(BadArguments, "numpy.choose", np.array([1, 0]), [np.ones(2)] * 64)
    refused(BadArguments, "numpy.choose", np.ones((1,) * 33, int), [np.ones(1)] * 2)


def test_conditions_of_select_are_bools() -> None:
    refused(DtypeNotAccepted, "numpy.select", [np.array([1, 0])], [np.array([1.0, 2.0])])


def test_indices_of_two_dtypes_in_a_list() -> None:
    x, k = np.arange(300.0), np.array([1, 2], np.uint8)
    refused(DtypesDiffer, "numpy.take", x, [k[0], np.int32(1)])
    check("numpy.take", x, [k[0], k[1]])


def test_floats_in_lists_that_do_not_fit() -> None:
    x = np.zeros(2, np.float32)
    refused(ScalarDoesNotFit, "numpy.add", x, [1e300, 1.0])
    refused(ScalarDoesNotFit, "numpy.histogram", x, [0.0, 1e300])

    def program(dtype: Any) -> Any:
        return lambda y: y + meaning("numpy.array").apply(y.builder, ([1e300, np.inf], dtype), {})

    with pytest.raises(Failure):
        run(program(None), x)
    assert np.all(np.isinf(run(program("float32"), x)))
    check("numpy.add", x.astype(np.float64), [1e300, -np.inf], symbolic=False)
    check("numpy.add", x.astype(np.float64), [2**70, 1], symbolic=False)
    refused(ScalarDoesNotFit, "numpy.add", x, [2**200, 1])


def test_result_types() -> None:
    def found(*others: Any) -> Any:
        def program(x: Any) -> Any:
            dtype = meaning("numpy.result_type").apply(x.builder, (x, *others), {})
            return meaning("numpy.zeros").apply(x.builder, (1, dtype), {})

        return run(program, np.zeros(1, np.uint8)).dtype

    assert found(3, True, "uint8", np.uint8(3)) == np.uint8
    for other in ("float64", np.float64(1), 1.5, [1.0], None, np.zeros(2)):
        with pytest.raises(Failure):
            found(other)


def test_single_numbers() -> None:
    x = np.array([1.0, 2.0, 3.0])
    refused(BadArguments, "numpy.sum", x, initial=x)
    refused(BadArguments, "numpy.maximum.reduce", x, initial=x)
    refused(BadArguments, "numpy.var", x, ddof=x)
    refused(BadArguments, "numpy.polyint", x, k=x)
    check("numpy.sum", x, initial=x[0])
    check("numpy.polyint", x, k=[4.0])


OPEN: dict[str, Callable[[Any, Any], tuple[Any, ...]]] = {
    "append": lambda a, b: (a, b),
    "concatenate": lambda a, b: ([a, [b]],),
    "convolve": lambda a, b: (a, [b, b]),
    "ediff1d": lambda a, b: (a, b),
    "full_like": lambda a, b: (a, b),
    "insert": lambda a, b: (a, 1, b),
    "nan_to_num": lambda a, b: (a, True, b),
    "outer": lambda a, b: (a, b),
    "polyval": lambda a, b: (a, b),
    "power": lambda a, b: (a, b),
    "where": lambda a, b: (a > 1, a, b),
}
"""Functions of an array without a dtype of its own and a number."""


@pytest.mark.parametrize("short", OPEN)
@pytest.mark.parametrize("number", [True, 2, 0.5, 1j])
@pytest.mark.parametrize("made", ["arange", "ones"])
@pytest.mark.filterwarnings("ignore")
def test_open_arrays_have_the_kind_of_numpys(short: str, number: Any, made: str) -> None:
    def program(x: Any) -> Any:
        array = meaning(f"numpy.{made}").apply(x.builder, (3,), {})
        return meaning(f"numpy.{short}").apply(x.builder, OPEN[short](array, number), {})

    theirs_made = np.arange(3) if made == "arange" else np.ones(3)
    wanted = _call(theirs, f"numpy.{short}", *OPEN[short](theirs_made, number))
    found = _call(run, program, np.zeros(1))
    if isinstance(found, Failure):
        return
    assert not isinstance(wanted, Exception)
    assert (found.dtype.kind, found.shape) == (wanted.dtype.kind, wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
