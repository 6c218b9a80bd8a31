"""The findings about a call in the words of its text: operands, order, initial values, origins."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from typing import Final

from pscdsl._src.frontend.interpreter.frames import Frame
from pscdsl._src.frontend.interpreter.places import (
    BoundArrayMethod,
    load,
    seen,
)
from pscdsl._src.frontend.interpreter.records import as_function
from pscdsl._src.frontend.interpreter.whole_rows import elements_meant
from pscdsl._src.frontend.values import (
    AnyValue,
    Applicable,
    Args,
    StaticFunction,
)
from pscdsl._src.ir.builder import Value, Weak
from pscdsl._src.ir.program import Atom, Var
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl._src.primitives.reductions import Reduce
from pscdsl.numpy.methods import BoundMethod
from pscdsl.typing.array_types import Shape
from pscdsl.typing.codes.control import CarryMismatch, LoopLengthsDiffer
from pscdsl.typing.codes.language import BadArguments, NotCallable
from pscdsl.typing.codes.shapes import ShapesDoNotBroadcast
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic, Failure, Label
from pscdsl.typing.dims import Dim
from pscdsl.typing.python_containers import (
    is_sequence,
    is_tuple,
)


def flat_items(values: Sequence[AnyValue]) -> list[AnyValue]:
    flat: list[AnyValue] = []
    for value in values:
        if is_sequence(value):
            flat.extend(flat_items(value))
        else:
            flat.append(value)
    return flat


_SIZES, _AXES, _ARRAYS = ("a shape", "sizes"), ("several axes", "axes"), ("its arrays", "arrays")


def in_words_of_call(
    failure: Failure,
    frame: Frame,
    node: ast.Call,
    function: AnyValue,
    args: Args,
    nodes: Sequence[ast.expr],
) -> Failure:
    """Return the findings about a call with the words, the order and the operands of its text."""
    failure = _in_order(_in_brackets(failure, frame, node, function, args, nodes), function, args)
    types = [*map(seen, args)]
    failure = _with_initial(with_operands(failure, frame, nodes, types), frame, node)
    return with_origins(failure, types)


_IN_ONE: Final = {
    **dict.fromkeys(("shape", "newshape", "new_shape"), _SIZES),
    **dict.fromkeys(("axis", "axes"), _AXES),
    **dict.fromkeys(("arrays", "tup", "object"), _ARRAYS),
    "reps": ("several numbers", "numbers"),
}
"""The parameters that take several items as one argument."""
_OF_TWO: Final = {
    **dict.fromkeys(("numpy.max", "numpy.amax"), "np.maximum"),
    **dict.fromkeys(("numpy.min", "numpy.amin"), "np.minimum"),
}
"""The elementwise functions that may have been meant instead of reductions."""


def _in_brackets(
    failure: Failure,
    frame: Frame,
    node: ast.Call,
    function: AnyValue,
    args: Args,
    nodes: Sequence[ast.expr],
) -> Failure:
    """Correct the finding about `np.zeros(n, m)` or `np.hstack(x, y)`, which take one tuple."""
    meaning = function
    if is_method := isinstance(function, BoundMethod | BoundArrayMethod):
        meaning = MEANINGS.get(f"numpy.{function.name}")
    if not isinstance(meaning, Meaning):
        return failure
    values = load([*args])
    parameters = meaning.signature.parameters
    for name, (one, several) in _IN_ONE.items():
        place = meaning.place(name)
        if place is None or (is_method and name != "axis"):  # `x.reshape(n, m)` is valid
            continue
        if name == "axis" and (parameters[name].annotation != "Axes" or "ddof" in parameters):
            continue  # one axis alone, or `np.std(x, 0, 1)`, which may mean `ddof=1`
        place -= is_method
        fits = _is_operand if several == "arrays" else _is_size
        fitting = [*map(fits, values[place:]), False]
        end = min(place + fitting.index(False), len(values) - meaning.required_behind(name))
        if end - place < 2:
            continue
        group = [*map(frame.source.text_of, dict.fromkeys(nodes[place:end]))]
        alone = len(group) == 1 and group[0].startswith("*")
        left, right = "[]" if several == "arrays" else "()"
        text = group[0][1:] if alone else f"{left}{', '.join(group)}{right}"
        rest = [frame.source.text_of(each) for each in node.keywords]
        rest = [*map(frame.source.text_of, dict.fromkeys(nodes[end:])), *rest]
        before = [*map(frame.source.text_of, dict.fromkeys(nodes[:place]))]
        written = f"{frame.source.text_of(node.func)}({', '.join([*before, text, *rest])})"
        kind = "list" if several == "arrays" else "tuple"
        problem = f"takes {one} as one {kind}, not as {end - place} arguments"
        return Failure(BadArguments(function=meaning.name, problem=problem, instead=f"`{written}`"))
    other = _OF_TWO.get(meaning.name)
    if other is not None and not is_method and len(values) == len(nodes) == 2:
        if isinstance(values[1], Value | Weak | float):
            texts = ", ".join(map(frame.source.text_of, nodes))
            finding = BadArguments(
                function=meaning.name,
                problem="takes one array, and an axis as its second argument",
                instead=f"`{other}({texts})` compares two, element by element",
            )
            return Failure(finding)
    return failure


def _is_size(value: AnyValue) -> bool:
    return isinstance(value, int | Dim) and not isinstance(value, bool)


def _is_operand(value: AnyValue) -> bool:
    return isinstance(value, Value | Weak | float)


_FUNCTIONS: Final = frozenset("f fun body_fun cond_fun true_fun false_fun".split())
"""The names of function parameters of combinators."""


def _in_order(failure: Failure, function: AnyValue, args: Args) -> Failure:
    """Correct the finding about a combinator with its arguments in the wrong order."""
    if isinstance(function, Meaning) and function.name.startswith("pscdsl.random."):
        place, shapes = function.place("shape"), [is_tuple(load(each)) for each in args]
        if place is not None and any(shapes) and not any(shapes[place : place + 1]):
            short = function.name.replace("pscdsl.", "psc.")
            problem = f"takes its shape as argument {place + 1}"
            names = [name for name in function.signature.parameters if name != "here"]
            order = ", ".join(names[: max(place + 1, len(args))])
            instead = f"the order is `{short}({order})`"
            return Failure(BadArguments(function=short, problem=problem, instead=instead))
    if not isinstance(function, StaticFunction) or not function.name.startswith("psc."):
        return failure
    parameters = [*inspect.signature(function.body).parameters.values()][1:]
    names = [each.name for each in parameters if each.kind is not each.KEYWORD_ONLY]
    needed = _FUNCTIONS.intersection(names)
    given = [isinstance(as_function(each), Applicable) for each in args]
    (finding, *others) = failure.diagnostics
    is_swapped = isinstance(finding, NotCallable) and sum(given) >= len(needed) > 0
    if isinstance(finding, LoopLengthsDiffer) and len(finding.lengths) == 1:
        second = load(args[1]) if len(args) > 1 else None
        is_swapped = names[1:3] == ["init", "xs"] and getattr(second, "shape", ()) != ()
    if others or not is_swapped or not isinstance(finding, NotCallable | LoopLengthsDiffer):
        return failure
    order = ", ".join(
        f"{'*' if each.kind is each.VAR_POSITIONAL else ''}{each.name}"
        for each in parameters
        if each.default is each.empty or each.name == "xs"
    )
    text = f"the order is `{function.name}({order})`"
    if order == "fun":  # `psc.grad` and similar
        text = f"`{function.name}(fun)` gives a function, which takes the arrays"
    return Failure(finding.replaced(instead=text))


def with_operands(
    failure: Failure,
    frame: Frame,
    nodes: Sequence[ast.expr],
    values: Sequence[AnyValue] = (),
    sign: str = "",
) -> Failure:
    """Add the operands' source text to findings about two operands."""
    if len(nodes) != 2 or not any(hasattr(d, "operands") for d in failure.diagnostics):
        return failure
    texts = [frame.source.text_of(node) for node in nodes]
    written = tuple(_beside(node, text) for node, text in zip(nodes, texts, strict=True))
    diagnostics: list[Diagnostic] = []
    for diagnostic in failure.diagnostics:
        if isinstance(diagnostic, ShapesDoNotBroadcast):
            if [getattr(value, "shape", None) for value in values] != list(diagnostic.shapes):
                diagnostics.append(diagnostic)
                continue
            kept = [
                _with_axis_kept(*pair) for pair in zip(nodes, texts, diagnostic.shapes, strict=True)
            ]
            reduced: tuple[tuple[int, ...], ...] = ()
            instead = ""  # if one operand has whole rows, and an element of each fits the other
            match [*values]:
                case [Value() as left, Value() as right]:
                    reduced = _reduced_apart(left, right)
                    instead = elements_meant(frame.source, (left,), right.shape)
                    instead = instead or elements_meant(frame.source, (right,), left.shape)
                case _:
                    pass
            diagnostic = diagnostic.replaced(
                sign=sign,
                kept=[text for text, _ in kept],
                kept_axes=[axis for _, axis in kept],
                reduced=reduced,
                instead=instead,
            )
        diagnostics.append(
            diagnostic.replaced(operands=written) if hasattr(diagnostic, "operands") else diagnostic
        )
    return Failure(*diagnostics)


def _reduced_apart(one: Value, other: Value) -> tuple[tuple[int, ...], ...]:
    """Return the axes along which two operands reduce the same array, if they differ."""
    (left, _), (right, _) = _reductions(one), _reductions(other)
    for source, axes in left.items():
        if source in right and right[source] != axes and len(axes) == len(right[source]) == 1:
            return (*axes, *right[source])
    return ()


def _reductions(
    value: Value, most: int = 200
) -> tuple[dict[tuple[frozenset[Atom], int], set[tuple[int, ...]]], frozenset[Atom]]:
    """Return the axes of the last reductions inside a value, and the atoms that it begins with.

    The axes are keyed by the atoms that the reduced array begins with, and by its rank.
    """
    made = {output: at for at in value.builder.equations for output in at.outputs}
    beginnings: set[Atom] = set()
    reductions: dict[tuple[frozenset[Atom], int], set[tuple[int, ...]]] = {}
    waiting, seen = [value.atom], {value.atom}
    while waiting and len(seen) < most:
        atom = waiting.pop()
        at = made.get(atom) if isinstance(atom, Var) else None
        if at is None:
            if isinstance(atom, Var):
                beginnings.add(atom)
            continue
        if isinstance(at.primitive, Reduce):
            source = Value(value.builder, at.inputs[0])
            start = _reductions(source, most - len(seen))[1]
            key = start, source.ndim
            reductions.setdefault(key, set()).add(at.primitive.axes)
            beginnings |= start
            continue
        fresh = [each for each in at.inputs if each not in seen]
        waiting += fresh
        seen.update(fresh)
    return reductions, frozenset(beginnings)


def _beside(node: ast.expr, text: str) -> str:
    """Return an operand's text, in parentheses if an operator needs them."""
    simple = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Constant)
    return text if simple else f"({text})"


def _reduction(name: str) -> Meaning | None:
    """Return the NumPy function of this name if it can keep the axes that it reduces."""
    for qualified in (f"numpy.{name}", f"numpy.linalg.{name}"):
        found = MEANINGS.get(qualified)
        if isinstance(found, Meaning) and {"axis", "keepdims"} <= found.signature.parameters.keys():
            return found
    return None


def _with_axis_kept(node: ast.expr, text: str, shape: Shape) -> tuple[str, int]:
    """Return a reduction along one axis with `keepdims=True`, and the axis; -1 if it is none."""
    if not isinstance(node, ast.Call) or not text.endswith(")"):
        return "", -1
    function = node.func
    reduction = _reduction(function.attr) if isinstance(function, ast.Attribute) else None
    if reduction is None:
        return "", -1
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    last = node.args[-1] if node.args and reduction.place("axis") == 1 else None
    axis = given.get("axis", last)
    try:
        number = None if axis is None else ast.literal_eval(axis)
    except (ValueError, SyntaxError):
        return "", -1
    if "keepdims" in given or type(number) is not int:
        return "", -1
    return f"{text[:-1].rstrip().rstrip(',')}, keepdims=True)", number % (len(shape) + 1)


INITIAL = {
    "psc.scan": (1, "init"),
    "psc.fori_loop": (3, "init_val"),
    "psc.while_loop": (2, "init_val"),
    "psc.map_reduce": (3, "init"),
}
"""The position and the keyword of a loop's initial carry."""


def _with_initial(failure: Failure, frame: Frame, node: ast.Call) -> Failure:
    """Add the place of the initial value to findings about a carry."""
    loops = {d.loop for d in failure.diagnostics if isinstance(d, CarryMismatch)}
    if len(loops) != 1:
        return failure
    loop = loops.pop()
    if loop not in INITIAL:
        return failure
    position, keyword = INITIAL[loop]
    given = [each.value for each in node.keywords if each.arg == keyword]
    found = given[0] if given else (node.args[position] if position < len(node.args) else None)
    if found is None:
        return failure
    return failure.labelled(Label(frame.span(found), "the carry starts as this"))


def with_origins(failure: Failure, args: Sequence[AnyValue]) -> Failure:
    """Add the declarations of the arguments to findings about their types."""
    if not all(d.code[3] in "345" for d in failure.diagnostics):
        return failure
    labels: list[Label] = []
    for each in flat_items(args):
        if isinstance(each, Value):
            origin = getattr(each.atom, "origin", NOWHERE)
            if origin is not NOWHERE and len(labels) < 3:
                labels.append(Label(origin, str(each.type)))
    if not labels:
        return failure
    return Failure(
        *(
            d if d.span is not NOWHERE or d.labels else d.labelled(*dict.fromkeys(labels))
            for d in failure.diagnostics
        )
    )
