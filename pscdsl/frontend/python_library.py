"""Python's own functions over static values: builtins, functools, dataclasses, operator, math."""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from pscdsl.builder import Weak
from pscdsl.frontend.frames import Frame, session_of
from pscdsl.frontend.instances import isinstance_
from pscdsl.frontend.iteration import items_of, unordered
from pscdsl.frontend.purity import external_value
from pscdsl.frontend.records import replaced
from pscdsl.frontend.values import (
    External,
    MapValue,
    Once,
    Partial,
    RecordValue,
    StaticFunction,
    Undecided,
    VectorValue,
    describe,
    is_traced,
    text,
)
from pscdsl.meanings import MEANINGS
from pscdsl.narrowing import is_dict, is_known_array
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.language import LOOPS, BadArguments, NotCallable, NotStatic
from pscdsl.typing.codes.language_arrays import ArrayLeavesProgram
from pscdsl.typing.codes.language_evaluation import TooLarge
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, maximum, minimum


def _call(here: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    apply = getattr(function, "apply", None)
    if apply is None:
        raise Failure(NotCallable(found=describe(function)))
    return apply(here, args, kwargs)


def _numpy(name: str) -> Any:
    return MEANINGS[f"numpy.{name}"]


def _len(here: Any, value: Any) -> Any:
    if is_traced(value):
        if not value.ndim:
            raise Failure(BadArguments(function="len", problem="of an array without axes"))
        return value.shape[0]
    if is_known_array(value):
        return len(value)
    if isinstance(value, RecordValue):
        value.cls.refuse_special("__len__")
    if isinstance(value, Once):
        raise Failure(BadArguments(function="len", problem=f"of {value.kind}, use a list"))
    return len(unordered(value))


def _range(here: Any, *bounds: Any) -> Any:
    for each in bounds:
        if is_traced(each):
            raise Failure(
                ArrayLeavesProgram(
                    function="range", rewrite="`psc.fori_loop(low, high, body, init)`"
                )
            )
        if isinstance(each, Dim):
            raise Failure(NotStatic(what=f"the size {each} in a loop", rewrite=LOOPS))
    return range(*bounds)


def _enumerate(here: Any, value: Any, start: int = 0) -> Any:
    return Once("an enumeration", [(i + start, item) for i, item in enumerate(items_of(value))])


def _zip(here: Any, *values: Any, strict: bool = False) -> Any:
    columns = [items_of(each) for each in values]
    if strict and len({len(each) for each in columns}) > 1:
        raise Failure(BadArguments(function="zip", problem="got sequences of different lengths"))
    return Once("a `zip`", list(zip(*columns, strict=False)))


def _sum(here: Any, value: Any, start: Any = 0) -> Any:
    if is_traced(value):
        return _numpy("sum").apply(here, (value,), {"axis": 0})
    return _fold(here, "Add", items_of(value), start)


def _fold(here: Any, name: str, items: Sequence[Any], start: Any) -> Any:
    from pscdsl.frontend import operators

    total = start
    frame = _frame(here)
    for item in items:
        traced = is_traced(item) or is_traced(total)
        if traced and isinstance(total, int) and total == 0 and name == "Add":
            total = item
        else:
            total = operators.binary(frame, _NO_NODE, name, total, item)
    return total


class _Here(Frame):
    """A frame that appends where the library function was called."""

    def here(self, node: Any) -> Any:
        program = self.session.program
        return None if program is None else program.current


_NO_NODE: Any = None


def _frame(here: Any) -> Frame:
    session = session_of(here)
    return _Here(session, None, None)  # type: ignore[arg-type]


def _extremum(name: str) -> Callable[..., Any]:
    def apply(here: Any, *values: Any, **kwargs: Any) -> Any:
        if len(values) == 1 and is_traced(values[0]):
            raise Failure(ArrayLeavesProgram(function=name, rewrite=f"`x.{name}()`"))
        collect = unordered if kwargs.get("key") is None else items_of
        items = collect(values[0]) if len(values) == 1 else values
        if any(is_traced(each) for each in items):
            rewrite = f"`np.{name}imum(a, b)`, or `np.{name}(x)` over an axis"
            raise Failure(ArrayLeavesProgram(function=name, rewrite=rewrite))
        if any(isinstance(each, Dim) for each in items):
            result = items[0]
            for each in items[1:]:
                result = (minimum if name == "min" else maximum)(result, each)
            return result
        python: Callable[..., Any] = min if name == "min" else max
        key = kwargs.get("key")
        if key is not None:
            kwargs["key"] = functools.partial(_call, here, key)
        return python(items, **kwargs)

    return apply


def _abs(here: Any, value: Any) -> Any:
    if isinstance(value, Dim):
        if here.facts.proves(Fact("<=", 0, value)):
            return value
        raise Failure(NotStatic(what=f"the sign of {value}"))
    return _numpy("absolute").apply(here, (value,), {}) if is_traced(value) else abs(value)


def _round(here: Any, value: Any, ndigits: Any = None) -> Any:
    if is_traced(value):
        return _numpy("round").apply(here, (value, ndigits or 0), {})
    return round(value, ndigits)


def _convert(name: str, python: Callable[[Any], Any], dtype: str) -> Callable[..., Any]:
    def apply(here: Any, value: Any = 0) -> Any:
        if isinstance(value, Undecided):
            return value
        if is_traced(value):
            raise Failure(
                ArrayLeavesProgram(
                    function=name, rewrite=f"`x.astype(psc.{dtype})` keeps it an array"
                )
            )
        if isinstance(value, External):
            raise Failure(external_value(value))
        if isinstance(value, Dim):
            return value if python is int else here.weak(value)
        return python(value)

    return apply


def _complex(here: Any, real: Any = 0, imag: Any = None) -> Any:
    """A number of one or two that are known; with a size among them it is weak."""
    given = [real] if imag is None else [real, imag]
    parts = [_convert("complex", lambda x: x, "c64")(here, each) for each in given]
    for each in parts:
        if isinstance(each, Undecided):
            return each
    if any(isinstance(each, Weak) for each in parts):
        return sum((part * unit for part, unit in zip(parts, (1, 1j), strict=False)), 0j)
    return complex(*parts)


def _tuple(here: Any, value: Any = ()) -> Any:
    return tuple(items_of(value))


def _list(here: Any, value: Any = ()) -> Any:
    return list(items_of(value))


def _dict(here: Any, value: Any = (), **kwargs: Any) -> Any:
    if isinstance(value, MapValue):
        value = dict(value.items)
    if not is_dict(value):
        value = items_of(value)
    return dict(value, **kwargs)


def _set(kind: type) -> Callable[..., Any]:
    def apply(here: Any, value: Any = ()) -> Any:
        items = unordered(value)
        if any(is_traced(each) for each in items):
            raise Failure(NotStatic(what="an item of a set"))
        return kind(items)

    return apply


def _getattr(here: Any, value: Any, name: Any, *default: Any) -> Any:
    if isinstance(name, str):
        from pscdsl.frontend.attributes import attribute

        node = ast.Attribute(ast.Name("value"), name)
        try:
            return attribute(_frame(here), node, value, name)
        except Failure:
            if default:
                return default[0]
            raise
    raise Failure(NotStatic(what="the attribute that `getattr` reads"))


def _all(here: Any, value: Any) -> Any:
    return _truths(value, "all", all)


def _any(here: Any, value: Any) -> Any:
    return _truths(value, "any", any)


def _truths(value: Any, name: str, python: Callable[[Sequence[Any]], bool]) -> Any:
    items = () if is_traced(value) else unordered(value)
    if is_traced(value) or any(is_traced(each) for each in items):
        raise Failure(ArrayLeavesProgram(function=name, rewrite=f"`np.{name}(x)`"))
    for each in items:
        if isinstance(each, External):
            raise Failure(external_value(each))
    if any(isinstance(each, Undecided) for each in items):
        raise Failure(NotStatic(what=f"`{name}` of conditions on sizes"))
    return python(items)


def _sorted(here: Any, value: Any, *, key: Any = None, reverse: bool = False) -> Any:
    items = unordered(value) if key is None else items_of(value)
    if any(is_traced(each) for each in items):
        raise Failure(ArrayLeavesProgram(function="sorted", rewrite="`np.sort(x)`"))
    if key is None:
        return sorted(items, reverse=reverse)
    return sorted(items, key=functools.partial(_call, here, key), reverse=reverse)


def _map(here: Any, function: Any, *columns: Any) -> Any:
    rows = zip(*(items_of(each) for each in columns), strict=False)
    return Once("a `map`", [_call(here, function, *row) for row in rows])


def _filter(here: Any, function: Any, items: Any) -> Any:
    kept = [item for item in items_of(items) if _holds(here, function, item)]
    return Once("a `filter`", kept)


def _holds(here: Any, function: Any, item: Any) -> bool:
    from pscdsl.frontend.operators import static_truth

    return static_truth(item if function is None else _call(here, function, item))


def _reduce(here: Any, function: Any, items: Any, *initial: Any) -> Any:
    values = [*initial, *items_of(items)]
    if not values:
        raise Failure(BadArguments(function="functools.reduce", problem="of nothing"))
    total = values[0]
    for each in values[1:]:
        total = _call(here, function, total, each)
    return total


def _partial(here: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    if getattr(function, "apply", None) is None:
        raise Failure(NotCallable(found=describe(function)))
    return Partial(function, args, kwargs)


def _replace(here: Any, value: Any, **changes: Any) -> Any:
    if not isinstance(value, RecordValue):
        raise Failure(BadArguments(function="dataclasses.replace", problem="takes a dataclass"))
    return replaced(value, changes)


def _identity(here: Any, function: Any) -> Any:
    return function


def _lru_cache(here: Any, maxsize: Any = 128, typed: bool = False) -> Any:
    """A cache changes nothing that a pure function says, and the function is looked into."""
    if getattr(maxsize, "apply", None) is not None:
        return maxsize
    return StaticFunction("functools.lru_cache", _identity)


def _pmap(here: Any, items: Any = None, **more: Any) -> Any:
    if isinstance(items, MapValue):
        items = items.items
    return MapValue({**(items or {}), **more})


def _pvector(here: Any, items: Any = ()) -> Any:
    return VectorValue(tuple(items_of(items)))


def _math(name: str) -> Callable[..., Any]:
    real: Callable[..., Any] = getattr(math, name)
    ours = {"pow": "power", "asin": "arcsin", "acos": "arccos", "atan": "arctan"}.get(name, name)
    ours = {"atan2": "arctan2", "fabs": "absolute", "ceil": "ceil", "floor": "floor"}.get(
        ours, ours
    )

    def apply(here: Any, *args: Any) -> Any:
        if any(is_traced(each) for each in args):
            rewrite = f"`np.{ours}` works on arrays" if f"numpy.{ours}" in MEANINGS else ""
            raise Failure(ArrayLeavesProgram(function=f"math.{name}", rewrite=rewrite))
        if any(isinstance(each, Dim) for each in args):
            meaning = MEANINGS.get(f"numpy.{ours}")
            if meaning is None:
                raise Failure(NotStatic(what="a size used as a number"))
            return _numpy(ours).apply(here, args, {})
        if name in ("factorial", "comb", "perm") and any(abs(each) > 1000 for each in args):
            raise Failure(TooLarge(what=f"`math.{name}` of numbers above 1000"))
        try:
            return real(*args)
        except (TypeError, ValueError, OverflowError) as error:
            raise Failure(BadArguments(function=f"math.{name}", problem=str(error))) from None

    return apply


def _operator(name: str) -> Callable[..., Any]:
    def apply(here: Any, left: Any, right: Any) -> Any:
        from pscdsl.frontend import operators

        return operators.binary(_frame(here), _NO_NODE, name, left, right)

    return apply


def _pow(here: Any, base: Any, exp: Any, mod: Any = None) -> Any:
    if mod is None:
        return _operator("Pow")(here, base, exp)
    if isinstance(base, int) and isinstance(exp, int) and isinstance(mod, int):
        return pow(base, exp, mod)
    raise Failure(NotStatic(what="`pow` with three arguments, unless all are static integers,"))


def _itemgetter(here: Any, index: Any) -> Any:
    from pscdsl.frontend.subscripts import subscript

    def get(inner: Any, value: Any) -> Any:
        return subscript(_frame(inner), _NO_NODE, value, index)

    return StaticFunction("operator.itemgetter", get)


def _type(here: Any, value: Any) -> Any:
    if isinstance(value, RecordValue):
        return value.cls
    raise Failure(NotStatic(what=f"the class of {describe(value)}"))


def _str(here: Any, value: Any = "") -> Any:
    return text(value)


def _slice(here: Any, *args: Any) -> Any:
    return slice(*args)


def _reversed(here: Any, value: Any) -> Any:
    if isinstance(value, Once):
        raise Failure(BadArguments(function="reversed", problem=f"of {value.kind}, use a list"))
    return Once("what `reversed` gives", list(items_of(value))[::-1])


def _divmod(here: Any, left: Any, right: Any) -> Any:
    return _operator("FloorDiv")(here, left, right), _operator("Mod")(here, left, right)


def _wraps(here: Any, wrapped: Any) -> Any:
    return StaticFunction("functools.wraps", _identity)


def _asdict(here: Any, value: Any) -> Any:
    return dict(value.fields)


def _m(here: Any, **items: Any) -> Any:
    return MapValue(items)


def _v(here: Any, *items: Any) -> Any:
    return VectorValue(items)


def _cast(here: Any, kind: Any, value: Any) -> Any:
    return value


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "builtins.len": _len,
    "builtins.range": _range,
    "builtins.enumerate": _enumerate,
    "builtins.zip": _zip,
    "builtins.sum": _sum,
    "builtins.min": _extremum("min"),
    "builtins.max": _extremum("max"),
    "builtins.abs": _abs,
    "builtins.round": _round,
    "builtins.float": _convert("float", float, "f32"),
    "builtins.int": _convert("int", int, "i32"),
    "builtins.bool": _convert("bool", bool, "bool"),
    "builtins.complex": _complex,
    "builtins.tuple": _tuple,
    "builtins.list": _list,
    "builtins.dict": _dict,
    "builtins.set": _set(set),
    "builtins.frozenset": _set(frozenset),
    "builtins.str": _str,
    "builtins.repr": _str,
    "builtins.slice": _slice,
    "builtins.isinstance": isinstance_,
    "builtins.getattr": _getattr,
    "builtins.all": _all,
    "builtins.any": _any,
    "builtins.sorted": _sorted,
    "builtins.reversed": _reversed,
    "builtins.map": _map,
    "builtins.filter": _filter,
    "builtins.type": _type,
    "builtins.pow": _pow,
    "builtins.divmod": _divmod,
    "functools.partial": _partial,
    "functools.reduce": _reduce,
    "functools.wraps": _wraps,
    "functools.cache": _identity,
    "functools.lru_cache": _lru_cache,
    "typeguard.typechecked": _identity,
    "dataclasses.replace": _replace,
    "dataclasses.asdict": _asdict,
    "pyrsistent.pmap": _pmap,
    "pyrsistent.m": _m,
    "pyrsistent.pvector": _pvector,
    "pyrsistent.v": _v,
    "operator.itemgetter": _itemgetter,
    "typing.cast": _cast,
    **{
        f"operator.{python}": _operator(name)
        for python, name in {
            "add": "Add",
            "sub": "Sub",
            "mul": "Mult",
            "truediv": "Div",
            "floordiv": "FloorDiv",
            "mod": "Mod",
            "pow": "Pow",
            "matmul": "MatMult",
            "and_": "BitAnd",
            "or_": "BitOr",
            "xor": "BitXor",
        }.items()
    },
    **{
        f"math.{name}": _math(name)
        for name in dir(math)
        if callable(getattr(math, name)) and not name.startswith("_")
    },
}


def register() -> None:
    """Give these functions their names."""
    for name, body in FUNCTIONS.items():
        MEANINGS[name] = StaticFunction(name, body)
