"""Typed and lowered programs as HTML: folded, with the source and the cost of each line."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from pscdsl._src.analysis.cost import traffic
from pscdsl._src.analysis.show import FunctionNames, FunctionText, nested
from pscdsl._src.frontend.text.display import Sources, shown_path
from pscdsl._src.ir.program import Block, Equation, Function
from pscdsl._src.kernels.lowered import Lowered
from pscdsl._src.notebook import markup
from pscdsl._src.primitives.control import block_cost
from pscdsl.typing.diagnostics import NOWHERE, Failure, Span

_MOST = 2_000
"""The most equations of a program."""
_OPENED = 100
"""The most equations of a function that is not folded."""


def html(program: Function | Lowered) -> str:
    """Return a typed program, or one that was lowered at sizes."""
    return markup.box(typed(program) if isinstance(program, Function) else lowered(program))


def lowered(program: Lowered) -> str:
    """Return the sizes of a program, its types and its StableHLO."""
    text = program.text()
    about = [*program.sizes.items(), *[("donated", name) for name in sorted(program.donated)]]
    lines = f"StableHLO, {len(text.splitlines()):,} lines"
    return "".join(
        (
            f"<div>{markup.muted('lowered')} {markup.code(program.kernel.signature)}</div>",
            markup.rows(about),
            markup.details(markup.muted("typed program"), typed(program.program)),
            markup.details(markup.muted(lines), markup.pre(text)),
        )
    )


def typed(program: Function) -> str:
    """Return a program, and below it the functions that it calls."""
    sources = Sources()
    names = FunctionNames()
    names.of(program)
    made: list[str] = []
    left = _MOST
    for each in names.found:  # which grows while it is walked
        page = _Page(each, names, sources, left)
        made.append(page.html(first=not made))
        left = page.left
        if left <= 0:
            made.append(markup.muted("… the rest is left out; print the program to see all of it"))
            break
    return f'<div style="font-family:monospace;white-space:pre">{"".join(made)}</div>'


class _Page:
    """The lines of one function."""

    def __init__(
        self, function: Function, names: FunctionNames, sources: Sources, left: int
    ) -> None:
        self.function = function
        self.shown = FunctionText(function, names)
        self.sources = sources
        self.left = left
        """The number of lines that may follow."""

    def html(self, *, first: bool) -> str:
        """Return the function below its signature; the first one is open, unless it is long."""
        before = self.left
        head = markup.text("\n".join(self.shown.signature()))
        facts = [_line(markup.text(f"assert {fact}")) for fact in self.function.facts.facts]
        body = "".join((*facts, self.block(self.function.body)))
        opened = first and before - self.left <= _OPENED
        return markup.details(f"{head}  {self.place(self.function.span)}", body, opened=opened)

    def block(self, block: Block) -> str:
        """Return the equations of a block and its results."""
        made: list[str] = []
        for equation in block.equations:
            if self.left <= 0:
                return "".join(made)
            made.append(self.equation(equation))
        return "".join((*made, _line(markup.text(self.shown.results(block)))))

    def equation(self, equation: Equation) -> str:
        """Return a line with its cost and its place in the source, and below it its blocks."""
        self.left -= 1
        shown = self.shown
        operation = shown.operation(equation)
        outputs = ", ".join(shown.output(var) for var in equation.outputs)
        text = markup.text(f"{outputs} = {operation}" if outputs else operation)
        line = f"{text}  {self.cost(equation)} {self.place(equation.span)}"
        inner = "".join(
            markup.details(
                f"{markup.text(shown.enter(each))}:", self.block(each.block), opened=True
            )
            for each in nested(equation.primitive, equation.inputs)
        )
        return markup.details(line, inner, opened=True) if inner else _line(line)

    def cost(self, equation: Equation) -> str:
        """Return the operations and the bytes of an equation, each time that it runs."""
        simplify = self.function.facts.simplify
        try:
            flops = simplify(block_cost(Block((), (equation,), ())))
            moved = simplify(traffic(equation))
        except Failure:
            return ""
        return markup.muted(f"# {flops} flops, {moved} bytes")

    def place(self, span: Span) -> str:
        """Return a link to a line of a file; a name without a link for other texts."""
        if span is NOWHERE:
            return ""
        shown = shown_path(span.path)
        name = markup.text(f"{os.path.basename(shown)}:{span.line}")
        source = markup.text((self.sources.line(span.path, span.line) or "").strip())
        if not os.path.isfile(span.path):
            return f'<span style="opacity:.7" title="{source}">{name}</span>'
        target = Path(shown).as_uri() if os.path.isabs(shown) else quote(shown)
        link = markup.text(f"{target}#L{span.line}")
        return f'<a href="{link}" title="{source}" style="opacity:.7;color:inherit">{name}</a>'


def _line(html: str) -> str:
    return f"<div>{html}</div>"
