"""Calls: library functions, inlined helpers, kernels, records, dtypes, Python's own functions."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from pscdsl._src.frontend import purity
from pscdsl._src.frontend.interpreter import masks, special_methods
from pscdsl._src.frontend.interpreter.arrangements import arrangement, inputs_of_ufunc
from pscdsl._src.frontend.interpreter.call_findings import flat_items, in_words_of_call
from pscdsl._src.frontend.interpreter.container_methods import Changing
from pscdsl._src.frontend.interpreter.containers import (
    adopt,
    container_of,
    is_container,
    note_sources,
)
from pscdsl._src.frontend.interpreter.frames import Frame
from pscdsl._src.frontend.interpreter.functions import BoundMethod as Method
from pscdsl._src.frontend.interpreter.functions import Closure, elements
from pscdsl._src.frontend.interpreter.iteration import Iterated, Long, is_lazy
from pscdsl._src.frontend.interpreter.places import (
    BoundArrayMethod,
    Frozen,
    Located,
    Ref,
    Reshaped,
    Step,
    apply_numpy,
    freeze,
    load,
    load_arguments,
    located_in,
    named_store,
    parts_of,
    shared,
    with_cells,
)
from pscdsl._src.frontend.interpreter.python_numbers import is_number
from pscdsl._src.frontend.interpreter.records import RecordClass, as_function
from pscdsl._src.frontend.interpreter.stores import (
    STORING,
    STORING_METHODS,
    CombinedAt,
    write_result,
)
from pscdsl._src.frontend.interpreter.writing import WritingKernel
from pscdsl._src.frontend.purity import is_closed
from pscdsl._src.frontend.size_numbers import Number
from pscdsl._src.frontend.trees import condition
from pscdsl._src.frontend.values import (
    POISON,
    PYTHON_DTYPES,
    AnyValue,
    Applicable,
    Args,
    Array,
    Builtin,
    External,
    Given,
    Kwargs,
    MapValue,
    Marker,
    Once,
    Place,
    Poison,
    Poisoned,
    StaticFunction,
    Undecided,
    describe,
    is_poisoned,
    is_traced,
)
from pscdsl._src.ir.builder import Builder, PythonNumber, Value, Weak, may_be_array, note_array
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.language.meanings import MEANINGS, Meaning, narrowed, not_taken
from pscdsl._src.language.results import Result, Results
from pscdsl.numpy import methods
from pscdsl.numpy.calling import in_loop, refuse_missing, values_only
from pscdsl.numpy.constants import NumpyInfo
from pscdsl.numpy.methods import BoundMethod
from pscdsl.typing import dtypes
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.language import BadArguments, NotCallable, NotStatic
from pscdsl.typing.codes.language_evaluation import TooLarge
from pscdsl.typing.codes.purity import Mutation, StaleView
from pscdsl.typing.codes.shapes import UnprovenSize
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import DType
from pscdsl.typing.python_containers import (
    is_constant,
    is_dict,
    is_dtype,
    is_known_array,
    is_scalar,
    is_sequence,
    is_tuple,
)

# The evaluation of callees and arguments.


def call(
    frame: Frame,
    node: ast.Call,
    func: ast.expr,
    args: Sequence[ast.expr],
    keywords: Sequence[ast.keyword],
) -> Place:
    """Evaluate a call."""
    # The import is here since calls and their arguments are expressions.
    from pscdsl._src.frontend.interpreter.expressions import (
        evaluate,
        locate,
        locate_in_place,
    )

    began = frame.session.cells
    function = locate(frame, func, used=True)
    argument: Callable[[Frame, ast.expr], Place]
    match function:
        case Builtin(consumes=True):
            argument = locate_in_place
        case Builtin(name="builtins.isinstance"):
            argument = _class
        case External() if function.name not in STORING:
            argument = partial(evaluate, used=True)
        case _:
            argument = locate
    values: list[Place] = []
    nodes: list[ast.expr] = []
    session = frame.session
    lazy: list[tuple[Place, int]] = []
    """The lazy arguments, each with the number of stores when it was evaluated."""
    for each in args:
        if isinstance(each, ast.Starred):
            source = locate_in_place(frame, each.value)
            items = elements(special_methods.gone_through(frame, each, source))
            values.extend(items)
            nodes.extend([each] * len(items))
        else:
            value = argument(frame, each)
            values.append(value)
            nodes.append(each)
            if is_lazy(value):
                lazy.append((value, session.stores - session.unseen_stores))
    named: dict[str, Place] = {}
    for keyword in keywords:
        value = (locate if keyword.arg is None else argument)(frame, keyword.value)
        given = {keyword.arg: value} if keyword.arg is not None else _unpacked(value)
        for name, item in given.items():
            if name in named:
                problem = f"got two values for argument '{name}'"
                called = str(getattr(function, "name", describe(function)))
                raise Failure(BadArguments(function=called, problem=problem))
            named[name] = item
    for value, stores in lazy:
        if session.stores - session.unseen_stores != stores:
            raise Failure(StaleView(by=describe(value), items=True))
    if isinstance(function, External):
        if function.name not in STORING or not values or not isinstance(values[0], Located):
            if is_poisoned(values) or is_poisoned(named):
                raise Failure(purity.external_use(function))
            return function.apply(frame.here(node), load(values), load(named))
    if isinstance(function, Poison) or is_poisoned(values) or is_poisoned(named):
        return POISON
    if isinstance(function, Meaning) and function.name.startswith("scipy."):
        pairs = list(zip(values, nodes, strict=True))
        named |= dict.fromkeys(_overwriting(function, pairs, named, keywords, began), False)
    here = frame.here(node)
    before = frame.session.cells
    try:
        result = applied(frame, node, here, function, values, named)
        owner = func.value if isinstance(func, ast.Attribute) else func
        if not isinstance(function, BoundArrayMethod):
            owner = nodes[0] if nodes else func
        return _unshared(frame, node, function, values, result, (owner, began, before))
    except Failure as failure:
        failure = named_store(failure, f"`{frame.source.text_of(func)}(…)`")
        failure = in_words_of_call(failure, frame, node, function, values, nodes)
        raise failure.at(frame.span(node)) from None
    except (TypeError, ValueError, ArithmeticError, LookupError):
        if not isinstance(
            function, Meaning | DType | BoundMethod | BoundArrayMethod | CombinedAt | External
        ):
            raise  # only the library's own Python refuses arguments in this way
        problem = not_taken(load(values), load(named))
        raise Failure(BadArguments(function=str(function.name), problem=problem)) from None


def _overwriting(
    function: Meaning,
    given: Sequence[tuple[Place, ast.expr]],
    named: Mapping[str, Place],
    keywords: Sequence[ast.keyword],
    began: int,
) -> list[str]:
    """Return the keywords `overwrite_a=True` of arrays that nothing refers to after the call."""
    nodes = {keyword.arg: keyword.value for keyword in keywords}
    found: list[str] = []
    for name, value in named.items():
        parameter = name.removeprefix("overwrite_")
        if parameter == name or value is not True:
            continue
        place = function.place(parameter)
        array, node = named.get(parameter), nodes.get(parameter)
        if place is not None and place < len(given):
            array, node = given[place]
        if not isinstance(array, Ref) or array.steps or array.cell.frozen is not None:
            continue
        if array.cell.maker is node and array.cell.serial > began:
            found.append(name)
    return found


def _unshared(
    frame: Frame,
    node: ast.Call,
    function: AnyValue,
    values: Args,
    result: Place,
    origin: tuple[ast.expr, int, int],
) -> Place:
    """Return the result of a call, with new memory if nothing else refers to the argument's array.

    `np.linspace(0, 1, 6).reshape(2, 3)` may be a view or a copy, without a visible difference.
    `origin` is the expression of the array, and the numbers of cells before it was made and before
    the call.
    """
    if not isinstance(result, Located):
        return result
    given: Place
    result_of: Callable[[Sequence[Place], Mapping[str, Place]], Results]
    match function:
        case BoundArrayMethod():
            given, result_of = function.owner, partial(methods.result_of, function.name)
        case Meaning() if function.name.startswith("numpy."):
            given, result_of = values[0] if values else None, function.result_of
        case _:
            return result
    place, began, before = origin
    if isinstance(given, Ref) and not given.steps:
        cell = given.cell
        alone = cell.maker is place and cell.serial > began and cell.frozen is None
        if alone and result_of([given], {}) is Result.SAME_ELEMENTS:
            result = with_cells(frame.session, result.load(), scalars=False)
    if isinstance(result, Ref) and not result.steps and result.cell.serial > before:
        result.cell.maker = node
    return result


def _class(frame: Frame, node: ast.expr) -> AnyValue:
    """Evaluate an argument of `isinstance`: no value is an instance of an unknown class."""
    # The import is here since calls and their arguments are expressions.
    from pscdsl._src.frontend.interpreter.expressions import evaluate

    session = frame.session
    session.classes, before = True, session.classes
    try:
        return evaluate(frame, node)
    finally:
        session.classes = before


def _unpacked(value: Place) -> dict[str, Place]:
    """Return the keyword arguments of `**value`."""
    if isinstance(value, MapValue):
        return dict(value.items)
    if isinstance(value, Poison):
        raise Poisoned
    if not is_dict(value):
        raise Failure(NotStatic(what=f"`**` of {describe(value)}"))
    for each in value:
        if not isinstance(each, str):
            problem = f"keywords are strings, and {describe(each)} is none"
            raise Failure(BadArguments(function="`**`", problem=problem))
    return value


def applied(
    frame: Frame, node: ast.Call, here: Builder, function: AnyValue, args: Args, kwargs: Kwargs
) -> Place:
    """Call a function with arguments that may be references; new arrays in its result get cells.

    A function that may keep its arguments is given values, and the cells that they refer to are
    frozen.
    """
    session = frame.session
    if frame.program is None:
        return invoke(frame, here, function, args, kwargs)
    of_mask = masks.called(here, function, args, kwargs)
    if of_mask is not None:
        return of_mask
    if special_methods.has(function, "__call__"):
        function = function.cls.method(function, "__call__")
    match function:
        case Method(function=Closure() | WritingKernel() as called, self_value=owner):
            function, args = called, (owner, *args)
        case RecordClass(kind="typeddict"):
            function = MEANINGS["builtins.dict"]  # its keys are not checked
        case Marker(name="numpy.ndarray"):
            function = MEANINGS["numpy.empty"]  # the uninitialised memory becomes zeros, too
        case _:
            pass
    match function:
        case Closure():
            return function.enter(session, function.bind(args, kwargs))
        case WritingKernel():
            return function.call(here, args, kwargs)
        case External():
            STORING[function.name](here, *args, **kwargs)
            return None
        case CombinedAt():
            function.store(here, *args, **kwargs)
            return None
        case BoundArrayMethod():
            return _method(frame, here, function, args, kwargs)
        case Meaning():
            return _library(frame, here, function, args, kwargs)
        case Changing():
            return function.change(here, args, kwargs)
        case Builtin():
            return _builtin(frame, node, here, function, args, kwargs)
        case DType():
            array = load(args[0]) if len(args) == 1 else None
            if isinstance(array, Value) and array.dtype is function and array.shape:
                return args[0]
            is_new = not (isinstance(array, Weak) and array.shape)  # its dtype is not decided yet
        case _:
            is_new = getattr(function, "returns_new_arrays", False)
    if is_new:
        made = with_cells(session, invoke(frame, here, function, *load_arguments(args, kwargs)))
        return adopt(session, made)  # a list or a dict without other holders
    return _holding(frame, node, here, function, args, kwargs)


def _holding(
    frame: Frame, node: ast.Call, here: Builder, function: AnyValue, args: Args, kwargs: Kwargs
) -> Place:
    """Call a function that may hold its arguments: they take no stores from here on."""
    session = frame.session
    frozen = Frozen(f"is given to {_title(function)}, which may hold it", frame.span(node))
    written = session.stores
    for argument in (*args, *kwargs.values()):
        freeze(session, argument, frozen)
    result = invoke(frame, here, function, *load_arguments(args, kwargs))
    if isinstance(result, Once) and session.stores != written:
        raise Failure(Mutation(what=f"a store in {result.kind}", rewrite=AT_ONCE))
    return result


def _builtin(
    frame: Frame, node: ast.Call, here: Builder, function: Builtin, args: Args, kwargs: Kwargs
) -> Place:
    """Call a function of Python's."""
    session, name = frame.session, function.name
    if len(args) == 1 and not kwargs and name in OF_RECORDS:
        method, rule = OF_RECORDS[name]
        if special_methods.has(args[0], method):
            return rule(frame, node, args[0])
    args = special_methods.with_items(frame, node, name, args)
    if function.given is Given.FOLLOWED:
        return _followed(frame, node, here, function, args, kwargs)
    if name == "builtins.sorted" and args:
        # The function that is the key may hold the items, not the list.
        freeze(session, tuple(parts_of(args[0])), Frozen("`sorted` is given", frame.span(node)))
    if not _reads(function, args, kwargs):
        return _holding(frame, node, here, function, args, kwargs)
    result = invoke(frame, here, function, *load_arguments(args, kwargs))
    if function.makes_container:
        return _new_container(frame, node, result)
    made = with_cells(session, result)
    if is_container(made) and container_of(session, made) is None:
        # The result may be a copy, here, of a container that others hold.
        others = Frozen("others hold", frame.span(node))
        for argument in (*args, *kwargs.values()):
            freeze(session, argument, others)
    return made


OF_RECORDS: Final = {
    "builtins.len": ("__len__", special_methods.length),
    "builtins.abs": ("__abs__", special_methods.absolute),
}
"""Python functions that call a method of a record."""


def _reads(function: Builtin, args: Args, kwargs: Kwargs) -> bool:
    """Return whether a Python function only reads its arguments and does not pass them on."""
    if function.name == "builtins.sum" and (len(args) != 1 or kwargs):
        return False  # without items it returns the start value
    reads = function.given is Given.READ
    return reads and ("key" not in kwargs or function.name == "builtins.sorted")


def _followed(
    frame: Frame, node: ast.Call, here: Builder, function: Builtin, args: Args, kwargs: Kwargs
) -> Place:
    """Call a Python function that passes on references; its result is new, or reads arguments."""
    session = frame.session
    result = invoke(frame, here, function, args, kwargs)
    if isinstance(result, Once):
        note_sources(session, function, args, result)
    elif isinstance(result, Iterated):
        beside = [each for each in args if is_container(each)]
        freeze(session, tuple(beside), Frozen("is gone through beside an array", frame.span(node)))
    elif function.makes_container:
        return _new_container(frame, node, result)
    return result


def _new_container(frame: Frame, node: ast.Call, made: Place) -> Place:
    """Return a list, dict or set that a function made of items which others may hold."""
    others = Frozen("comes from what is not followed", frame.span(node))
    return adopt(frame.session, with_cells(frame.session, made, others))


AT_ONCE: Final = "it is done when the items are gone through: write a loop"


def _title(function: AnyValue) -> str:
    """Return a function's name or description for a message about its arguments."""
    name = getattr(function, "name", "")
    known = isinstance(name, str) and name
    return f"`{name.removeprefix('builtins.')}`" if known else describe(function)


def _library(frame: Frame, here: Builder, function: Meaning, args: Args, kwargs: Kwargs) -> Place:
    """Call a library function; its result is new, or may be a view of the arguments."""
    if any(map(_holds_long, (*args, *kwargs.values()))):
        function, args, kwargs = _of_long_lists(function, args, kwargs)
    target, args, kwargs = _target(function, args, kwargs)
    values, named = load_arguments(args, kwargs)
    result = invoke(frame, here, function, values, named)
    if target is not None:
        return write_result(here, function.name, target, result)
    known = function.result_of(values, named)
    return _placed(frame, function.name, known, args, kwargs, result)


def _placed(
    frame: Frame, name: str, known: Results, args: Args, kwargs: Kwargs, result: AnyValue
) -> Place:
    """Give each array in a new result a cell; mark other results as possible views."""
    if not isinstance(known, Result):
        assert is_tuple(result)
        parts = zip(known, result, strict=True)
        return tuple([_placed(frame, name, part, args, kwargs, each) for part, each in parts])
    if known.is_new:
        scalars, in_c_order = known.scalars, known.in_c_order
        return with_cells(frame.session, result, scalars=scalars, c_order=in_c_order)
    return _viewing(frame, name, known, args, kwargs, result)


def _holds_long(argument: Place) -> bool:
    """Return whether an argument is a list that a loop made, or has one among its items."""
    items = argument if is_sequence(argument) else (argument,)
    return any(isinstance(each, Long) for each in items)


def _of_long_lists(
    function: Meaning, args: Args, kwargs: Kwargs
) -> tuple[Meaning, Sequence[Place], Mapping[str, Place]]:
    """Replace lists that loops made by arrays, where NumPy converts lists to arrays."""
    if function.name == "numpy.stack" and len(args) == 1 and not kwargs:
        array = MEANINGS["numpy.array"]
        assert isinstance(array, Meaning)
        function = array if isinstance(args[0], Long) else function
    if function.name in _JOINING and len(args) == 1 and not kwargs and isinstance(args[0], Long):
        args = [[_joined_rows(function.name, args[0].array())]]
    names, several = function.lists, function.several
    places = {function.place(name) for name in names}

    def array_of(given: Place, name_or_place: str | int) -> Place:
        if isinstance(given, Long):
            return given.array() if name_or_place in names or name_or_place in places else given
        if several and is_sequence(given):
            return [each.array() if isinstance(each, Long) else each for each in given]
        return given

    args = [array_of(each, place) for place, each in enumerate(args)]
    return function, args, {name: array_of(each, name) for name, each in kwargs.items()}


def _joined_rows(name: str, rows: Array) -> Array:
    """Return `np.concatenate`, `np.vstack` or `np.hstack` of the rows of an array."""
    facts, rank = rows.builder.facts, rows.ndim - 1
    if (name == "numpy.hstack" and rank > 1) or (name == "numpy.concatenate" and rank == 0):
        problem = f"takes no list of {rows.shape[0]} arrays with {rank} axes here"
        raise Failure(BadArguments(function=name, problem=problem))
    claim = Fact("<=", 1, rows.shape[0])
    if not facts.proves(claim):
        raise Failure(UnprovenSize.of(facts, f"the number of arrays in `{name}`", claim))
    if rank == 0:
        if name == "numpy.vstack":
            return apply_numpy(rows.builder, "reshape", rows, (-1, 1))
        return rows
    if rank == 1 and name == "numpy.vstack":
        return rows
    count, size, *rest = rows.shape
    return apply_numpy(rows.builder, "reshape", rows, (count * size, *rest))


_JOINING: Final = frozenset(f"numpy.{name}" for name in ("concatenate", "vstack", "hstack"))
"""Functions that join the arrays in a list along one axis."""


def _target(
    function: Meaning, args: Args, kwargs: Kwargs
) -> tuple[Located | None, Sequence[Place], Mapping[str, Place]]:
    """Split the arguments into the array that the call writes to, if any, and the others."""
    out = kwargs.get("out")
    count = inputs_of_ufunc(function.name)
    if out is None and count is not None and len(args) == count + 1:
        out, args = args[-1], args[:-1]
    if is_tuple(out) and len(out) == 1:
        (out,) = out
    if out is None:
        return None, args, kwargs
    if not isinstance(out, Located):
        rewrite = "give an array that the function made, or use the result"
        raise Failure(Mutation(what=f"`out=` of `{function.name}`", rewrite=rewrite))
    return out, args, {name: each for name, each in kwargs.items() if name != "out"}


def _method(
    frame: Frame, here: Builder, function: BoundArrayMethod, args: Args, kwargs: Kwargs
) -> Place:
    """Call a method of an array."""
    owner, name = function.owner, function.name
    if name in STORING_METHODS:
        values, named = load_arguments(args, kwargs)
        return STORING_METHODS[name](here, owner, *values, **named)
    target = kwargs.get("out")
    if target is not None:
        kwargs = {key: each for key, each in kwargs.items() if key != "out"}
    whole, (values, named) = owner.load(), load_arguments(args, kwargs)
    result = invoke(frame, here, methods.attribute(whole, name), values, named)
    if is_number(result):
        return result
    if isinstance(target, Located):
        return write_result(here, f"numpy.{name}", target, result)
    if target is not None:
        raise Failure(Mutation(what=f"`out=` of `{name}`", rewrite="use the result"))
    known = methods.result_of(name, [whole, *values], named)
    if isinstance(known, Result) and known.is_new:
        if not owner.ndim and any(cell.frozen for cell in owner.cells()):
            return result  # the method of an array or of a scalar
    elif name in ("reshape", "transpose") and len(args) > 1:
        args = [tuple(args)]
    return _placed(frame, f"numpy.{name}", known, [owner, *args], kwargs, result)


def _viewing(
    frame: Frame, name: str, known: Result, args: Args, kwargs: Kwargs, result: AnyValue
) -> Place:
    """Return a result as a followed view, or as a possible view of the arguments."""
    owner = args[0] if args else None
    if isinstance(owner, Ref) and is_traced(result):
        step: Step | None = None
        if known is Result.ARRANGED:
            step = arrangement(name, owner.ndim, *load_arguments(args[1:], kwargs))
        elif name in ("numpy.reshape", "numpy.ravel") and not owner.steps and not kwargs:
            plain = owner.cell.in_c_order and len(args) == (2 if name == "numpy.reshape" else 1)
            step = Reshaped(result.shape) if plain else None
        if step is not None:
            return owner.view(step, result)
    cells = [
        cell
        for each in (*args, *kwargs.values())
        for ref in located_in(each)
        for cell in ref.cells()
    ]
    return shared(result, cells, f"`{purity.written(name)}`")


def invoke(
    frame: Frame,
    here: Builder,
    function: AnyValue,
    args: Sequence[AnyValue],
    kwargs: Mapping[str, AnyValue],
) -> AnyValue:
    """Apply a callable to values."""
    if "out" in kwargs and isinstance(function, Meaning | BoundMethod):  # no array to write to
        refusal = purity.library_call(function.name, kwargs)
        if refusal is not None:
            raise Failure(refusal)
        kwargs = {name: value for name, value in kwargs.items() if name != "out"}
    match function:
        case Meaning():
            return _of_meaning(frame, here, function, args, kwargs)
        case DType():
            return _cast(frame, here, function, args, kwargs)
        case Marker():
            instead = purity.instead_of(function.name)
            raise Failure(NotCallable(found=describe(function), instead=instead))
        case BoundMethod():
            return _of_method(here, function, args, kwargs)
        case _:
            called = as_function(function)
            if isinstance(called, Applicable):
                return called.apply(here, args, kwargs)
            raise Failure(NotCallable(found=describe(called)))


def _of_meaning(
    frame: Frame,
    here: Builder,
    function: Meaning,
    args: Sequence[AnyValue],
    kwargs: Mapping[str, AnyValue],
) -> AnyValue:
    """Apply a library function to values."""
    kwargs = values_only(function.name, kwargs)
    if frame.program is None:
        return static_numpy(function, args, kwargs)
    if kwargs:
        args, kwargs = in_loop(here, function, *_plain_all(here, args, kwargs))
        refuse_missing(function, function.name, kwargs)
    args, kwargs = _plain_all(here, args, kwargs)
    folded = fold(function, args, kwargs)
    if folded is not None:
        return folded
    result: AnyValue
    try:
        result = function.of_mixed(here, args, kwargs)
    except Failure:
        given = (*args, *kwargs.values())
        unknown = next((x for x in given if isinstance(x, External) and not x.library), None)
        if unknown is None:
            raise
        raise Failure(purity.external_value(unknown)) from None
    if isinstance(result, Number | PythonNumber) and function.name.startswith("numpy."):
        return result.as_array()
    return result


def _of_method(
    here: Builder, function: BoundMethod, args: Sequence[AnyValue], kwargs: Mapping[str, AnyValue]
) -> AnyValue:
    """Apply a method of an array to values."""
    name = f"numpy.{function.name}"
    kwargs = values_only(name, kwargs)
    meaning = MEANINGS.get("numpy.ravel" if function.name == "flatten" else name)
    if kwargs and isinstance(meaning, Meaning):
        refuse_missing(meaning, name, kwargs)
    args, kwargs = _plain_all(here, args, kwargs)
    result: AnyValue = function.apply(here, args, kwargs)
    known = methods.result_of(function.name, [function.value, *args], kwargs)
    if not is_traced(result) or (isinstance(known, Result) and known.scalars):
        return result
    is_array = function.name == "reshape" or may_be_array(function.value)
    return note_array(result) if is_array else result


def _plain_all(
    here: Builder, args: Sequence[AnyValue], kwargs: Mapping[str, AnyValue]
) -> tuple[list[AnyValue], dict[str, AnyValue]]:
    return [_plain(here, x) for x in args], {key: _plain(here, x) for key, x in kwargs.items()}


def _plain(here: Builder, x: AnyValue) -> AnyValue:
    """Return an argument for the library: conditions as arrays, Python types as dtypes."""
    if isinstance(x, Undecided):
        return condition(here, x)
    if isinstance(x, StaticFunction):
        return PYTHON_DTYPES.get(x.name, x)
    return x


def _cast(
    frame: Frame,
    here: Builder,
    dtype: DType,
    args: Sequence[AnyValue],
    kwargs: Mapping[str, AnyValue],
) -> AnyValue:
    if len(args) != 1 or kwargs:
        raise Failure(BadArguments(function=dtype.name, problem="takes one argument"))
    (x,) = args
    if dtype is dtypes.KEY:
        problem = "is made by `psc.random.key(seed)`"
        raise Failure(BadArguments(function="psc.Key", problem=problem))
    if frame.program is None:
        with np.errstate(all="ignore"):
            number: AnyValue = to_numpy(dtype).type(x)
            return number
    match x:
        case bool() | int() | float() | complex():
            with np.errstate(all="ignore"):
                made: AnyValue = narrowed(here.constant(to_numpy(dtype).type(x)))
                return made
        case Value() | Weak():
            array: Array = x
        case np.ndarray() | np.generic():
            array = here.constant(x)
        case Dim():
            array = here.weak(x)
        case _:
            problem = f"takes a number or an array, not {describe(x)}"
            raise Failure(BadArguments(function=dtype.name, problem=problem))
    return apply_numpy(here, "astype", array, dtype)


_FOLDABLE = (int, float, complex, bool)


def fold(
    function: Meaning, args: Sequence[AnyValue], kwargs: Mapping[str, AnyValue]
) -> bool | int | float | complex | None:
    """Compute a NumPy function of Python numbers as a Python number; None for any other call."""
    if kwargs or not args or not function.name.startswith("numpy."):
        return None
    if not all(isinstance(argument, _FOLDABLE) for argument in args):
        return None
    real = getattr(np, function.name.removeprefix("numpy."), None)
    if not isinstance(real, np.ufunc):
        return None
    with np.errstate(all="ignore"):
        try:
            result = real(*args)
        except (TypeError, ValueError, OverflowError):
            return None
    number: bool | int | float | complex | None = result.item() if is_scalar(result) else None
    if number is None or result.dtype != np.asarray(number).dtype:
        return None  # the result has a dtype that differs from Python's
    return number


MAX_STATIC = 1_000_000
MAX_WORK = 100_000_000
"""The limit on the product of the sizes of a function's array arguments."""


def static_numpy(
    function: Meaning, args: Sequence[AnyValue], kwargs: Mapping[str, AnyValue]
) -> AnyValue:
    """Call NumPy for constants at module level, with bounded sizes."""
    real: Any = np if function.name.startswith("numpy.") else None
    for part in function.name.split(".")[1:]:
        real = getattr(real, part, None)
    if real is None:
        raise Failure(NotStatic(what=f"`{function.name}` outside of a kernel"))
    numbers = [x for x in flat_items([*args, *kwargs.values()]) if isinstance(x, int)]
    product = 1
    for number in numbers:
        product *= max(abs(number), 1)
    if product > MAX_STATIC and not function.name.endswith(("asarray", "array")):
        raise Failure(TooLarge(what="a constant this large"))
    work = 1
    for each in flat_items([*args, *kwargs.values()]):
        work *= max(each.size, 1) if is_known_array(each) else 1
    if work > MAX_WORK and not isinstance(real, np.ufunc):
        raise Failure(TooLarge(what=f"`{function.name}` of arrays this large"))
    plain = [_as_numpys(function.name, x) for x in args]
    named = {key: _as_numpys(function.name, x) for key, x in kwargs.items()}
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings concern whoever runs the module
            result: AnyValue = real(*plain, **named)
    except Exception as error:
        said, *_ = (*str(error).splitlines(), "")
        why = f" ({said})" if said and "<" not in said else ""
        raise Failure(NotStatic(what=f"`{function.name}` here{why}")) from None
    if isinstance(result, np.finfo | np.iinfo):
        return NumpyInfo(result)
    if is_known_array(result) and result.size > MAX_STATIC:
        raise Failure(TooLarge(what="a constant this large"))
    if is_known_array(result) and result.dtype.kind not in "?biufcV":
        raise Failure(NotStatic(what=f"an array of {result.dtype.name}"))
    return result


def _as_numpys(name: str, value: AnyValue) -> AnyValue:
    """Return an argument for NumPy; a Failure for a value that neither NumPy nor Python has."""
    if isinstance(value, StaticFunction):
        value = PYTHON_DTYPES.get(value.name, value)
    if isinstance(value, DType):
        return to_numpy(value)
    if is_closed(value) or is_constant(value) or is_dtype(value):
        return value
    if is_sequence(value):
        items = [_as_numpys(name, item) for item in value]
        return tuple(items) if is_tuple(value) else items
    if isinstance(value, External):
        raise Failure(purity.external_value(value))
    raise Failure(NotStatic(what=f"`{name}` of {describe(value)} outside of a kernel"))
