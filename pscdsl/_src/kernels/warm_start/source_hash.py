"""What the source of a kernel is, in few bytes.

The text of every function that the kernel was made of counts: its own, those that were elaborated
inline, and kernels that it calls, of libraries too.  Where they stand does not, nor what else is in
their files.  Values of the module that are captured count in the program's fingerprint alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from hashlib import sha256

from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.text.sources import Sources
from pscdsl._src.frontend.transformations.derived import DerivedDefinition
from pscdsl._src.ir.program import Block, Function
from pscdsl._src.primitives.control import Call
from pscdsl.typing.spans import Span


def source_hash(definition: Definition, programs: Iterable[Function]) -> str:
    """SHA-256, as text, of the source of a kernel and of programs that were made of it."""
    places: dict[str, set[int]] = {}
    for span in _spans(definition, programs):
        for frame in span.frames():
            places.setdefault(frame.path, set()).add(frame.line)
    sources = Sources()
    texts = {text for path, lines in places.items() for text in _statements(sources, path, lines)}
    made = sha256(definition.name.encode())
    for text in sorted(texts):
        made.update(f"\n{len(text)}\n{text}".encode(errors="replace"))
    return made.hexdigest()


def _spans(definition: Definition, programs: Iterable[Function]) -> Iterator[Span]:
    yield definition.span
    while isinstance(definition, DerivedDefinition):
        definition = definition.base
        yield definition.span
    yield from definition.entered
    seen: set[Function] = set()
    due = list(programs)
    while due:
        program = due.pop()
        if program in seen:
            continue
        seen.add(program)
        yield program.span
        blocks = [program.body]
        while blocks:
            yield from _of_block(blocks.pop(), blocks, due)


def _of_block(block: Block, blocks: list[Block], due: list[Function]) -> Iterator[Span]:
    for equation in block.equations:
        yield equation.span
        blocks.extend(equation.primitive.blocks())
        if isinstance(equation.primitive, Call):
            due.append(equation.primitive.function)


def _statements(sources: Sources, path: str, lines: set[int]) -> Iterator[str]:
    """The statements of a module in which some lines stand."""
    rows = sources.lines(path)
    try:
        tree = ast.parse("\n".join(rows))
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in tree.body:
        first = min([node.lineno, *[each.lineno for each in getattr(node, "decorator_list", ())]])
        last = node.end_lineno or first
        if any(first <= line <= last for line in lines):
            yield "\n".join(rows[first - 1 : last]).rstrip()
