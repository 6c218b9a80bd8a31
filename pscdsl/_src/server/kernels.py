"""Facts about kernels: types of names, signatures, costs; as hovers, hints and lenses."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pscdsl._src.analysis.cost import Cost, cost
from pscdsl._src.frontend.definitions import Definition, Excluded
from pscdsl._src.frontend.text.source import FunctionStatement, Source
from pscdsl._src.frontend.trees import flatten
from pscdsl._src.frontend.values import AnyValue, Poisoned, is_traced
from pscdsl._src.ir.builder import Program
from pscdsl._src.ir.program import Function
from pscdsl._src.primitives.effects import without_effects
from pscdsl._src.server.explanations import CODE, first_paragraph, kind_of
from pscdsl._src.server.workspace import Checked, Kernel, TextPosition
from pscdsl._src.transforms.simplify import simplify
from pscdsl.typing.diagnostics import Failure, Span, plainly

_MOST = 3
"""The most types of one name, for several choices, that are shown."""
_MOST_CHOICES = 8
"""The most choices that are examined for the cost of a kernel."""
_LONGEST = 60
"""The longest type that is shown within the code in full."""


# The types of names.


@dataclass(frozen=True, slots=True)
class Typed:
    """A name where it is bound, with its type."""

    name: str
    span: Span
    type: str


def typed_names(checked: Checked) -> list[Typed]:
    """Return the names that kernels bind, and the functions that they enter, in order."""
    found: dict[Span, Typed] = {}
    for _, definition in checked.kernels:
        types: dict[ast.Name, dict[str, None]] = {}
        sources: dict[ast.Name, Source] = {}
        for elaboration in definition.elaborations.assigned:
            for node, (source, value) in elaboration.items():
                sources[node] = source
                types.setdefault(node, {}).update(dict.fromkeys(_type_of(value)))
        for node, texts in types.items():
            if 0 < len(texts) <= _MOST:
                span = sources[node].span(node)
                text = " | ".join(texts)
                found.setdefault(span, Typed(node.id, span, text))
    return sorted(found.values(), key=lambda each: (each.span.line, each.span.column))


def _type_of(value: AnyValue) -> Iterator[str]:
    """Yield the type of a value with arrays; nothing for any other."""
    here = Program().current
    try:
        found, tree = flatten(here, value, "a name")
    except (Failure, Poisoned):
        return
    if any(is_traced(each) for each in found):
        yield plainly(str(tree))


# Signatures and costs.


def signature(definition: Definition) -> str | None:
    """Return the parameters and the result of a kernel, also an undeclared one."""
    try:
        shown = definition.shown()
    except (Failure, Poisoned):
        return None
    text = shown.types()
    made = result(definition) if shown.result is None else None
    return text if made is None else f"{text} -> {made}"


def result(definition: Definition) -> str | None:
    """Return the inferred type of a kernel's result, if it is the same for all choices."""
    types = {
        None if program.result is None else str(program.result)
        for _, program in _programs(definition)
    }
    return plainly(text) if len(types) == 1 and (text := types.pop()) else None


def _programs(definition: Definition) -> Iterator[tuple[str, Function]]:
    """Yield the programs of the choices that a signature leaves open, with the choices in words."""
    try:
        choices = definition.tried().choices() or []
    except (Failure, Poisoned):
        return
    for choice in choices[:_MOST_CHOICES]:
        if (choice.dtypes, choice.ranks) == (choices[0].dtypes, choices[0].ranks):
            try:
                yield str(choice), definition.instance(choice)
            except (Failure, Excluded, Poisoned):
                continue


def costs(definition: Definition) -> dict[Cost, str]:
    """Return the costs of a kernel, each with the first choice that has it."""
    found: dict[Cost, str] = {}
    for choice, program in _programs(definition):
        try:
            found.setdefault(replace(cost(simplify(without_effects(program))), loops=()), choice)
        except Failure:  # a primitive has no cost
            return {}
    return found


def cost_text(definition: Definition) -> str | None:
    """Return the cost of a kernel, on one line."""
    found = costs(definition)
    parts = [f"{_number(each.flops)} flops, {_number(each.bytes)} bytes" for each in found]
    if len(found) == 1:
        return parts[0]
    texts = [f"{part} where {choice}" for part, choice in zip(parts, found.values(), strict=True)]
    return "; ".join(texts[:2]) + ("; …" if len(texts) > 2 else "") if texts else None


def _number(size: object) -> str:
    return f"{size:,}" if isinstance(size, int) else str(size)


# Hovers.


def hover(checked: Checked, place: TextPosition, line: str) -> tuple[str, Span | None] | None:
    """Return the hover text for a place, in Markdown, and the span that it is about."""
    for found in CODE.finditer(line):
        first, last = found.start() + 1, found.end() + 1
        if first <= place.column <= last and "psc" in line[: found.start()].rpartition("#")[2]:
            kind = kind_of(found[0])
            if kind is not None:
                span = Span(place.path, place.line, first, place.line, last)
                return first_paragraph(kind), span
    source = checked.source
    if source is None:
        return None
    for name, definition in checked.kernels:
        own = definition.name_place
        if place.within(own.head(len(name.rpartition(".")[2]))):
            return _of_kernel(name, definition), None
    node = _name_at(source, place)
    if node is None:
        return None
    text = _of_name(checked, source, place, node.arg if isinstance(node, ast.arg) else node.id)
    return None if text is None else (text, source.span(node))


def _of_kernel(name: str, definition: Definition) -> str:
    shown = signature(definition)
    text = f"```python\n{name}{shown or '(…)'}\n```"
    costs_ = cost_text(definition)
    return text if costs_ is None else f"{text}\n\n{costs_}"


def _name_at(source: Source, place: TextPosition) -> ast.Name | ast.arg | None:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name):
            if place.within(source.span(node)):
                return node
        elif isinstance(node, ast.arg):
            if place.within(source.span(node).head(len(node.arg))):
                return node
    return None


def _of_name(checked: Checked, source: Source, place: TextPosition, name: str) -> str | None:
    """Return the type of a local name or parameter, or the kernel that another name is bound to."""
    function = _function_at(source, place)
    if function is not None:
        inside = source.span(function)
        before = [
            each
            for each in typed_names(checked)
            if each.name == name
            and TextPosition(each.span.path, each.span.line, each.span.column).within(inside)
        ]
        here = (place.line, place.column)
        last = [each for each in before if (each.span.line, each.span.column) <= here]
        if before:
            return f"```python\n{name}: {(last or before[:1])[-1].type}\n```"
        for _, definition in checked.kernels:
            if definition.span == inside:
                text = _parameter(definition, name)
                if text is not None:
                    return text
    for known, definition in checked.kernels:
        if known == name:
            return _of_kernel(known, definition)
    return None


def _parameter(definition: Definition, name: str) -> str | None:
    try:
        parameters = definition.signature.parameters
    except (Failure, Poisoned):
        return None
    for each in parameters:
        if each.name == name:
            return f"```python\n{name}: {each.spec}\n```"
    return None


def _function_at(source: Source, place: TextPosition) -> ast.AST | None:
    """Return the innermost function statement around a place."""
    found: ast.AST | None = None
    for node in ast.walk(source.tree):
        if isinstance(node, FunctionStatement) and place.within(source.span(node)):
            found = node
    return found


# Hints in the code, and lenses above kernels.


@dataclass(frozen=True, slots=True)
class InlayText:
    """A text that is shown behind a place."""

    place: TextPosition
    text: str
    full: str
    """The full text if it is too long."""


def hints(checked: Checked, path: str) -> Iterator[InlayText]:
    """Yield the types of the names that are bound in a text, and the undeclared results."""
    source = checked.source
    if source is None:
        return
    annotated = {
        source.span(node.target)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.AnnAssign)
    }
    for each in typed_names(checked):
        if each.span.path == path and each.span not in annotated:
            end = TextPosition(path, each.span.end_line, each.span.end_column)
            yield _hint(end, f": {each.type}")
    for _, definition in checked.kernels:
        node = definition.closure.node
        if definition.source.path == source.path and isinstance(node, FunctionStatement):
            found = result(definition) if node.returns is None else None
            behind = _end_of_parameters(definition.source, node)
            if found is not None and behind is not None and behind.path == path:
                yield _hint(behind, f" -> {found}")


def _hint(place: TextPosition, text: str) -> InlayText:
    short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return InlayText(place, short, text)


def _end_of_parameters(source: Source, node: FunctionStatement) -> TextPosition | None:
    """Return the place after the bracket that closes the parameters."""
    spec = node.args
    inner: list[ast.AST] = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *spec.defaults]
    inner += [each for each in (spec.vararg, spec.kwarg, *spec.kw_defaults) if each is not None]
    ends = [(source.span(each).end_line, source.span(each).end_column) for each in inner]
    span = source.span(node)
    line, column = max(ends, default=(span.line, span.column))
    shift = node.lineno - span.line  # a line of a cell is another one of the notebook's text
    for number in range(line, span.end_line + 1):
        row = source.lines[number + shift - 1]
        found = row.find(")", column - 1 if number == line else 0)
        if found >= 0:
            return TextPosition(span.path, number, found + 2)
    return None


def lenses(checked: Checked, path: str) -> Iterator[tuple[Span, Kernel]]:
    """Yield the kernels of a text, with the places above which a lens is shown."""
    for name, definition in checked.kernels:
        span = definition.name_place
        if span.path == path:
            yield replace(span, end_line=span.line, end_column=span.column), (name, definition)
