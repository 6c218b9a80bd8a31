"""Stores into what functions give: results that nobody else holds, and those that others may."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import copy
import importlib.util
import operator
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f64

pytestmark = pytest.mark.quick_code


def middle(x: f64["n"]) -> tuple[f64, f64, f64]:
    m = np.median(x)
    before = m
    m += 1
    n = np.nanmedian(x)
    n /= 2
    return m, before, n


def along(x: f64["n"]) -> f64["n"]:
    m = np.median(np.outer(x, x), axis=1)
    same = m
    m += 1
    return same


def others(x: f64["n"]) -> f64["n"]:
    a = np.round(x * 2.26, 1)
    a += 1
    b = np.einsum("i,i->i", x, x)
    b *= a
    c = np.nan_to_num(x)
    c[0] = 7
    d = np.linalg.matrix_power(np.outer(x, x), 2)
    d[0] = 0
    return b + c + d[-1]


def steps(x: f64["n"]) -> f64["n-1"]:
    assert x.shape[0] >= 2
    d = np.diff(x)
    d *= 2
    return d


def shaped(x: f64["n"]) -> tuple[f64["n 1"], f64["2 3"], f64["n"], f64["n"], f64["n n"]]:
    a = (x * 2).reshape(-1, 1)
    a += 1
    b = np.linspace(0, 1, 6).reshape(2, 3)
    b[0] = 5
    c = np.asarray(x + 1)
    c[0] = 0
    d = np.squeeze(np.expand_dims(-x, 1))
    d[-1] = 0
    e = np.outer(x, x).ravel().reshape(len(x), -1)
    e[0] *= 2
    return a, b, c, d, e


def one_element(x: f64["n"]) -> tuple[f64, f64]:
    a = np.sum(x, keepdims=True).reshape(())
    same = a
    a += 1
    b = x.sum(keepdims=True).squeeze()
    b -= 1
    return same, b


def cast_to_own(x: f64["n"]) -> tuple[f64["n"], f64["n"], f64["n n"], f64["n n"], f64["n"]]:
    a = x.copy()
    same: Any = np.float64(a)
    same[0] = 7
    b = np.outer(x, x)
    turned: Any = np.float64(b.T)
    turned[-1, 0] = 5
    c: Any = np.float32(x)
    c[0] = 3
    return a, same, b, turned, np.float64(c)


def looped(x: f64["n"]) -> f64["n"]:
    total = np.zeros(len(x))
    for i in range(40):
        y = (x * i).reshape(-1)
        y[0] += 1
        total += y
    return total


def matched(wanted: Any, found: Any) -> None:
    """The same values, dtypes and shapes."""
    if isinstance(wanted, tuple):
        assert len(wanted) == len(found)
        for one, other in zip(wanted, found, strict=True):
            matched(one, other)
        return
    one, other = np.asarray(wanted), np.asarray(found)
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "function",
    [middle, along, others, steps, shaped, one_element, cast_to_own, looped],
    ids=lambda x: x.__name__,
)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_as_under_numpy(function: Callable[..., Any], size: int) -> None:
    if function is steps and size < 2:
        return
    x = np.array([3.0, -1.0, 2.5, 8.0, 0.5])[:size]
    if function is shaped and size == 1:
        return  # NumPy squeezes all axes away
    kernel: Any = psc.kernel(function)
    matched(function(x.copy()), kernel(x))


def held(y: Any, holders: list[Any]) -> Any:
    holders.append(y)
    return y


def held_elsewhere(x: f64["n"]) -> f64["n"]:
    holders: list[Any] = []
    a = held(x * 2, holders).reshape(-1)
    a[0] = 7
    return holders[0]


def named_within(x: f64["n"]) -> f64["n"]:
    a = (y := x * 2).reshape(-1)
    a[0] = 7
    return y


def named_before(x: f64["n"]) -> f64["n"]:
    y = x * 2
    a = np.reshape(y, -1)
    a[0] = 7
    return y


def given_back(x: f64["n"]) -> f64["n"]:
    y = x * 2
    z = np.diff(y, n=0)
    z += 1
    return y


def first_power(x: f64["n"]) -> f64["n n"]:
    y = np.outer(x, x)
    z = np.linalg.matrix_power(y, 1)
    z += 1
    return y


# Stores into the results of functions, which leave the arguments as they are.

NEW: Final = (
    "np.fft.fft2(m)", "np.fft.ifft2(m, axes=(0, 1))", "np.fft.fftn(m, s=(2, 2), axes=(0, 1))",
    "np.fft.ifftn(x)", "np.fft.rfft2(m)", "np.polyder(x)", "np.polyder(x, 2)", "np.polyder(x, m=1)",
    "np.polyint(x)", "np.polyint(x, 2)", "np.roots(x)", "np.histogram(x)[0]", "np.histogram(x)[1]",
    "np.histogram(x, 3)[1]", "np.histogram(x, bins=e)[0]", "np.histogram(x, [0, 1, 9])[1]",
    "np.histogram_bin_edges(x)", "np.histogram_bin_edges(x, bins=4)",
    "np.histogram2d(x, y, 3)[0]", "np.histogram2d(x, y)[1]", "np.histogram2d(x, y, [2, 3])[2]",
    "np.histogram2d(x, y, [e, e])[0]", "np.diag(x)", "np.diag(x, 1)", "np.nan_to_num(x)",
    "np.median(m, axis=0)", "np.nanmedian([m, m], (0, 1))", "np.median(m, 1, keepdims=True)",
    "np.polyfit(x, y, 1)",
    "np.asarray([x[0], 2.0])", "np.asarray([x, y])", "np.linalg.matrix_power(m, 0)",
    "np.linalg.matrix_power(m, 2)", "np.diff(x)", "np.diff(m, n=2, axis=0)", "np.round(x, 1)",
    "np.einsum('ij,j->i', m, x[:3])", "np.apply_along_axis(np.sort, 0, m)", "np.tril_indices(3)[0]",
    "np.meshgrid(x, y)[1]", "np.gradient(x)", "np.unravel_index(np.arange(3), (2, 2))[0]",
    "np.ravel_multi_index(np.tril_indices(3), (3, 3))", "np.spacing(x)",
)  # fmt: skip
VIEWS: Final = (
    "np.polyder(x, 0)", "np.polyint(x, m=0)",
    "np.histogram(x, e)[1]", "np.histogram(x, bins=e)[1]", "np.histogram_bin_edges(x, e)",
    "np.histogram2d(x, y, [e, e])[1]", "np.histogram2d(x, y, [2, e])[2]", "np.diag(m)",
    "np.histogram2d(x, y, e)[2]", "np.diff(x, n=0)", "np.linalg.matrix_power(m, 1)",
    "np.diag_indices(3)[0]", "np.asarray(x)", "np.atleast_2d(x)", "np.broadcast_to(x, (2, 5))",
    "np.real(x)", "np.real(c)", "np.imag(c)", "np.einsum('ii->i', m)", "np.split(x[:4], 2)[0]",
    "np.diagonal(m)", "np.ix_(np.arange(3))[0]", "np.broadcast_arrays(x, m[:1, :1])[0]",
    "np.array(x, copy=False)", "m.astype(np.float64, copy=False)", "np.linalg.diagonal(m)",
)  # fmt: skip
STORE: Final = """

def store_{number}(x: f64["5"], y: f64["5"], m: f64["3 3"], e: f64["4"], c: c128["2 2"]):
    x, y, m, e, c = x.copy(), y.copy(), m.copy(), e.copy(), c.copy()
    r = {call}
    r[0] = 1
    r[-1] *= 0
    return r, x, y, m, e, c
"""


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Functions that store into results, by the texts of the calls."""
    path = tmp_path_factory.mktemp("stores") / "stores_into_results.py"
    calls = list(enumerate((*NEW, *VIEWS)))
    head = "import numpy as np\nfrom pscdsl import c128, f64\n"
    path.write_text(head + "".join(STORE.format(number=i, call=each) for i, each in calls))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {each: getattr(module, f"store_{i}") for i, each in calls}


def operands() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    x, y, m = rng.standard_normal(5), rng.standard_normal(5), rng.standard_normal((3, 3))
    return x, y, m, np.array([-2.0, 0.0, 1.0, 3.0]), rng.standard_normal((2, 2)) + 1j


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", NEW)
def test_stores_into_new_results_are_numpys(call: str, stores: dict[str, Any]) -> None:
    wanted, found = stores[call](*operands()), psc.kernel(stores[call])(*operands())
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_allclose(np.asarray(other), one, rtol=1e-9, atol=1e-9)
    for one, given in zip(wanted[1:], operands(), strict=True):
        np.testing.assert_array_equal(one, given)


@pytest.mark.parametrize("call", VIEWS)
def test_stores_into_what_may_be_a_view_are_refused(call: str, stores: dict[str, Any]) -> None:
    with pytest.raises(psc.CheckError, match=r"PSC205|PSC210"):
        psc.kernel(stores[call])(*operands())


@pytest.mark.parametrize(
    "function",
    [held_elsewhere, named_within, named_before, given_back, first_power],
    ids=lambda x: x.__name__,
)
def test_what_others_may_hold_is_refused(function: Callable[..., Any]) -> None:
    kernel: Any = psc.kernel(function)
    with pytest.raises(psc.CheckError, match=r"PSC205|PSC210"):
        kernel(np.ones(3))


def test_a_stale_view_is_reported_where_it_is_returned() -> None:
    def stale(x: f64["n"]) -> f64["n"]:
        y = x * 2
        flat = y.reshape(-1)
        y[0] = 0
        return flat

    with pytest.raises(psc.CheckError) as caught:
        psc.kernel(stale)(np.ones(3))
    (found,) = caught.value.diagnostics
    assert found.code == "PSC210"
    assert found.span.line == stale.__code__.co_firstlineno + 4


def test_help_says_that_a_kernel_may_write_to_its_argument() -> None:
    def added(x: f64["n"]) -> f64["n"]:
        x += 1
        return x

    with pytest.raises(psc.CheckError, match=r'declare it: `@psc.kernel\(writes="x"\)`'):
        psc.kernel(added)(np.ones(3))


def test_what_differs_has_the_name_that_it_is_bound_to() -> None:
    def chosen(x: f64["n"]) -> f64["n"]:
        assert x.shape[0] >= 2
        y = x if x[0] > 0 else x[1:]
        return y

    def given(x: f64["n"]) -> f64["n"]:
        assert x.shape[0] >= 2
        if x[0] > 0:
            return x
        return x[1:]

    with pytest.raises(psc.CheckError, match="`y` is "):
        psc.kernel(chosen)(np.ones(3))
    with pytest.raises(psc.CheckError, match="what `given` returns is "):
        psc.kernel(given)(np.ones(3))


CAPTURED = np.ones(3)


def test_help_says_to_write_to_a_copy_of_what_is_captured() -> None:
    def stored(x: f64["3"]) -> f64["3"]:
        CAPTURED[0] = 1
        return x

    with pytest.raises(psc.CheckError, match=r"write to a copy, `CAPTURED.copy\(\)`"):
        psc.kernel(stored)(np.ones(3))


# What may be a scalar of NumPy, or an array without axes: `+=` replaces one, and writes the other.


class Pair(NamedTuple):
    """Two numbers."""

    a: f64
    b: f64


def returned(x: Any) -> Any:
    if x[0] > 0:
        return np.array(1.0)
    return x[0]


def found_in(x: Any) -> Any:
    for v in x:
        if v > 2:
            return np.array(v)
    return x[0]


def increased(a: Any) -> Any:
    a += 1
    return a


def of_argument(a: f64) -> f64:
    b = a
    a += 1
    return a + 10 * b


def of_field(p: Pair) -> f64:
    a = p.a
    for _ in range(3):
        a += 1
    return a + p.a


def of_number(a: float, x: f64["n"]) -> f64:
    b = a
    a += 1
    return x[0] * a + b


def scalar_in_if(x: f64["n"]) -> f64:
    s = x[0]
    if x[0] > 0:
        s = np.array(3.0)
    u = s
    s += 1
    return s + 10 * u


def number_in_expression(x: f64["n"]) -> f64:
    s = 3.0 if x[0] < 0 else np.array(2.5)
    u = s
    s += 1
    return s + 10 * u


def result_of_function(x: f64["n"]) -> f64:
    s = returned(x)
    u = s
    s += 1
    return s + 10 * u


def result_of_loop(x: f64["n"]) -> f64:
    s = found_in(x)
    u = s
    s += 1
    return s + 10 * u


def swapped_items(x: f64["n"]) -> f64:
    items = [x[0], np.array(1.0)]
    if x[0] > 0:
        items[0], items[1] = items[1], items[0]
    u = items[0]
    items[0] += 1
    return items[0] + 10 * u


def swapped_in_loop(x: f64["n"]) -> f64:
    items = [x[0], np.array(1.0)]
    for _ in x:
        items[0], items[1] = items[1], items[0]
    u = items[0]
    items[0] += 1
    return items[0] + 10 * u


def values_of_dict(x: f64["n"]) -> f64:
    d = {"a": x[0]}
    if x[0] > 0:
        d["a"] = np.array(2.0)
    u = d["a"]
    d["a"] += 1
    return d["a"] + 10 * u


def parts_of_tuples(x: f64["n"]) -> f64:
    s, t = (np.array(3.0), x[0]) if x[0] > 0 else (x[0], np.array(2.0))
    u = s
    s += 1
    return s + 10 * u + t


def collected(x: f64["n"]) -> f64:
    items = [np.array(v) for v in x]
    u = items[0]
    u += 1
    return items[0] + u


def collected_deep(x: f64["n"]) -> f64:
    items = [[np.array(v)] for v in x]
    u = items[0][0]
    u += 1
    return items[0][0] + u


def collected_by_map(x: f64["n"]) -> f64:
    items = list(map(np.array, x))
    u = items[0]
    u += 1
    return items[0] + u


def appended(x: f64["n"]) -> f64:
    items: list[Any] = []
    for v in x:
        items.append(np.array(v))
    u = items[0]
    u += 1
    return items[0] + u


def iterated(x: f64["n"]) -> f64:
    items = [np.array(v) for v in x]
    t = x[0]
    for u in items:
        w = u
        w += 1
        t = t + u
    return t + items[0]


def array_then_scalar(x: f64["n"]) -> f64:
    s = np.array(0.0)
    for v in x:
        s = s + v
    u = s
    s += 1
    return s + 10 * u


def scalar_then_array(x: f64["n"]) -> f64:
    s = x[0]
    for v in x:
        s = np.array(v)
    u = s
    s += 1
    return s + 10 * u


def within_steps(x: f64["n"]) -> f64:
    s = np.array(0.0)
    t = x[0]
    for v in x:
        u = s
        s += v
        t = t + u
        s = s + 1
    return s + 10 * t


def until_large(x: f64["n"]) -> f64:
    s = np.array(0.5)
    while s < 4:
        s = s + abs(x[0]) + 1
    u = s
    s += 1
    return s + 10 * u


def in_record(x: f64["n"]) -> f64:
    s = Pair(np.array(2.0), x[0]).a
    u = s
    s += 1
    return s + 10 * u


def in_one_of_records(x: f64["n"]) -> f64:
    r = Pair(np.array(2.0), x[0])
    if x[0] < 0:
        r = Pair(x[0], x[0])
    s = r.a
    u = s
    s += 1
    return s + 10 * u


def copied(x: f64["n"]) -> f64:
    s = np.array(3.0) if x[0] > 2 else x[0]
    t = s.copy()
    u = t
    t += 1
    return t + 10 * u


def cast(x: f64["n"]) -> f64:
    s = np.array(3.0) if x[0] > 2 else x[0]
    t = s.astype(np.float32)
    u = t
    t += 1
    return (t + 10 * u).astype(np.float64)


def conjugate(x: f64["n"]) -> f64:
    s = np.array(3.0) if x[0] > 2 else x[0]
    t = s.conj()
    u = t
    t += 1
    return t + 10 * u


def copy_after_loop(x: f64["n"]) -> f64:
    s = np.array(0.0)
    for v in x:
        s = s + v
    t = s.copy()
    u = t
    t += 1
    return t + 10 * u


def cast_after_loop(x: f64["n"]) -> f64:
    s = np.array(0.0)
    for v in x:
        s = s + v
    t = s.astype(np.float32)
    u = t
    t += 1
    return (t + 10 * u).astype(np.float64)


def copy_of_array(x: f64["n"]) -> f64:
    s = np.array(3.0) if x[0] < 0 else x[0]
    u = np.copy(s)
    t = u
    t += 1
    return u + 10 * t


def copy_by_python(x: f64["n"]) -> f64:
    s = np.array(3.0) if x[0] < 0 else x[0]
    u = copy.copy(s)
    t = u
    t += 1
    return u + 10 * t


def real_part(x: f64["n"]) -> f64:
    s: Any = np.array(3.0 + 1j) if x[0] > 0 else x[0] + 1j
    t = s.real
    t += 1
    return t + 10 * s.real


def reshaped_by_method(x: f64["n"]) -> f64:
    t = x[0].reshape(())
    u = t
    t += 1
    return t + 10 * u


def reshaped(x: f64["n"]) -> f64:
    t = np.reshape(x[0], ())
    u = t
    t += 1
    return t + 10 * u


def squeezed(x: f64["n"]) -> f64:
    t = np.squeeze(x[:1] + 0)
    u = t
    t += 1
    return t + 10 * u + x[0]


def as_array(x: f64["n"]) -> f64:
    s = x[0]
    t = np.asarray(s)
    u = t
    t += 1
    return t + 10 * u + s


def given_to_function(x: f64["n"]) -> f64:
    s = np.array(3.0) if x[0] > 0 else x[0]
    t = increased(s)
    return t + 10 * s


def given_to_operator(x: f64["n"]) -> f64:
    s = np.array(3.0) if x[0] > 0 else x[0]
    t = operator.iadd(s, 1)  # type: ignore[no-untyped-call]
    return t + 10 * s


def written_by_out(x: f64["n"]) -> f64:
    s = np.array(3.0) if x[0] > 0 else x[0]
    u = s
    np.add(s, 1, out=s)
    return s + 10 * u


def held_by_function(x: f64["n"]) -> f64:
    s = np.array(3.0) if x[0] > 0 else x[0]

    def own() -> Any:
        return s

    u = own()
    u += 1
    return u + 10 * s


def one_of_where(x: f64["n"]) -> f64:
    s = np.where(x[0] > 1, x[0], 2.0)
    t = s if x[0] > 0 else x[0]
    u = t
    t += 1
    return u + 10 * t


def larger(x: f64["n"]) -> f64:
    s = max(np.array(2.0), x[0])
    u = s
    s += 1
    return u + 10 * s


def with_ellipsis(x: f64["n"]) -> f64:
    r = x.copy()
    s = r[0, ...]
    s += 1
    return r[0] + 10 * s


def bound_anew(x: f64["n"]) -> f64:
    s: Any = np.array(3.0) if x[0] > 0 else x[0]
    u = s
    s = s + 1
    t = s
    t += 1
    return np.exp(s) * s.sum() + s.real + s.T + 10 * u + t


def always_scalars(x: f64["n"]) -> f64:
    s = x[0] if x[0] > 0 else x.sum()
    for v in x:
        u = s
        s += v + u
    items = [v * 2 for v in x]
    t = items[0]
    t += 1
    return s + t + items[0]


BOTH = [
    *(scalar_in_if, number_in_expression, result_of_function, result_of_loop, swapped_items),
    *(swapped_in_loop, values_of_dict, parts_of_tuples, collected, collected_deep, appended),
    *(collected_by_map, iterated, array_then_scalar, scalar_then_array, within_steps, until_large),
    *(in_record, in_one_of_records, copied, cast, conjugate, copy_after_loop, cast_after_loop),
    *(copy_of_array, copy_by_python, real_part, reshaped_by_method, reshaped, squeezed, as_array),
    *(given_to_function, given_to_operator, written_by_out, held_by_function),
    *(one_of_where, larger, with_ellipsis, bound_anew, always_scalars),
]


@pytest.mark.parametrize("function", BOTH, ids=lambda x: x.__name__)
def test_scalars_and_arrays_without_axes(function: Callable[..., Any]) -> None:
    kernel: Any = psc.kernel(function)
    for first in (3.0, -1.0, 1.5):
        x = np.array([first, 2.5, 8.0])
        try:
            found = kernel(x)
        except psc.CheckError:
            assert function not in (bound_anew, always_scalars)
            continue
        wanted = function(x.copy())
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_arguments_without_axes_may_be_arrays() -> None:
    cases: list[tuple[Callable[..., Any], Any]] = [
        (of_argument, 3.0),
        (of_field, Pair(np.array(3.0), np.array(2.0))),
    ]
    for function, argument in cases:
        with pytest.raises(psc.CheckError, match=r"`a \+=`(.*\n)*.*help: `a = a \+ 1` binds"):
            psc.kernel(function)(argument)
    kernel: Any = psc.kernel(of_number)
    assert float(kernel(3.0, np.ones(2))) == of_number(3.0, np.ones(2))
