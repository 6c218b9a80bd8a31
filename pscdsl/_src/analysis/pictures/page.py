"""Graphs of programs as one page of HTML that loads nothing: a drawing in SVG for each function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final

from pscdsl._src.analysis.pictures.graph import Box, EdgeKind, FunctionBox, Node, NodeKind
from pscdsl._src.analysis.pictures.layers import Arrow, Drawing, Point, arrange

_LETTER, _LINE, _PAD = 7.3, 16.0, 9.0
"""The width and height of a letter, and the space around a text, in pixels."""
_MOST_LETTERS: Final = 46
_MOST_OUTPUTS: Final = 4

_STYLE = """\
:root { color-scheme: light dark; --ink: #1f2933; --faint: #66727f; --line: #9aa5b1;
  --page: #ffffff; --node: #f6f8fa; --parameter: #e3f0ff; --effect: #ffefd6; --results: #e2f5e6;
  --box: rgba(96, 125, 160, 0.07); --call: #f0e8ff; --hot: #d1495b; }
@media (prefers-color-scheme: dark) { :root { --ink: #dfe6ee; --faint: #93a1b0; --line: #5f6c7b;
  --page: #14181d; --node: #222a33; --parameter: #17324d; --effect: #4a3617; --results: #1b3d26;
  --box: rgba(140, 170, 210, 0.07); --call: #35284d; --hot: #ff8fa0; } }
body { margin: 24px; background: var(--page); color: var(--ink);
  font: 14px/1.45 system-ui, sans-serif; }
h1 { font-size: 20px; } h2 { font-size: 16px; margin: 32px 0 4px; }
pre, svg { font: 12px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; }
pre { margin: 4px 0; max-height: 150px; overflow: auto; white-space: pre-wrap; }
p { margin: 8px 0; color: var(--faint); } p a { margin-right: 12px; color: inherit; }
.drawing { overflow-x: auto; padding: 8px 0; }
svg text { fill: var(--ink); white-space: pre; } svg .faint { fill: var(--faint); }
svg .name { font-weight: 600; }
rect { stroke: var(--line); fill: var(--node); }
.parameter > rect { fill: var(--parameter); } .results > rect { fill: var(--results); }
.effect > rect { fill: var(--effect); } .call > rect { fill: var(--call); }
.holder > rect, .block > rect { fill: var(--box); } .block > rect { stroke-dasharray: 4 3; }
.edge path { fill: none; stroke: var(--line); stroke-width: 1.3; }
.edge:hover path { stroke: var(--hot); stroke-width: 3; }
.node:hover > rect { stroke: var(--hot); stroke-width: 2; }
.key span { padding: 1px 8px; border: 1px solid var(--line); border-radius: 4px;
  color: var(--ink); }"""

_KEY = (
    '<p class="key"><span style="background:var(--parameter)">parameter</span> '
    '<span style="background:var(--node)">operation</span> '
    '<span style="background:var(--call)">call</span> '
    '<span style="background:var(--effect)">effect</span> '
    '<span style="background:var(--results)">results</span> '
    "Point at an operation or an edge for its type, its cost and its source; "
    "a call leads to its function.</p>"
)


def write(functions: Sequence[FunctionBox], title: str) -> str:
    """Return a page with a section for each function."""
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n{_KEY}\n"
    )
    links = "\n".join(f'<a href="#{_anchor(f.name)}">{escape(f.name)}</a>' for f in functions)
    head += f"<p>{links}</p>\n" if len(functions) > 1 else ""
    return head + "".join(map(_section, functions)) + "</body>\n</html>"


def _section(function: FunctionBox) -> str:
    head = "\n".join([*function.signature, *(f"{name}: {text}" for name, text in function.cost)])
    drawn = _contents(function.body)
    width, height = drawn.width + 2, drawn.height + 2
    return (
        f'<section id="{_anchor(function.name)}">\n<h2>{escape(function.name)}</h2>\n'
        f"<pre>{escape(head)}</pre>\n"
        f'<div class="drawing"><svg width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="-1 -1 {width:.0f} {height:.0f}">\n{drawn.svg}</svg></div>\n</section>\n'
    )


def _anchor(name: str) -> str:
    return escape(f"function-{name}")


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A part of a drawing, whose upper left corner is at the origin."""

    width: float
    height: float
    svg: str


def _contents(box: Box) -> _Drawn:
    """Return the nodes of a block with the edges between them."""
    drawn = [_node(node) for node in box.nodes]
    indices = {node.id: index for index, node in enumerate(box.nodes)}
    outputs = [len(node.outputs) for node in box.nodes]
    arrows: list[Arrow] = []
    titles: list[str] = []
    for index, node in enumerate(box.nodes):
        for edge in node.edges:
            if edge.kind is EdgeKind.USE:
                source = indices[edge.source]
                arrows.append(Arrow(source, edge.output, index))
                titles.append(str(box.nodes[source].outputs[edge.output]))
    drawing = arrange([(each.width, each.height) for each in drawn], arrows, outputs)
    return _Drawn(drawing.width, drawing.height, "".join(_pieces(drawing, drawn, titles)))


def _pieces(drawing: Drawing, drawn: Sequence[_Drawn], titles: Sequence[str]) -> Iterator[str]:
    for route, title in zip(drawing.routes, titles, strict=True):
        yield f'<g class="edge"><title>{escape(title)}</title><path d="{_curve(route)}"/></g>\n'
    for each, (x, y) in zip(drawn, drawing.corners, strict=True):
        yield _moved(each.svg, x, y)


def _curve(route: Sequence[Point]) -> str:
    """Return a path that is vertical at each point."""
    path = [f"M{route[0][0]:.1f} {route[0][1]:.1f}"]
    for (x, y), (to_x, to_y) in pairwise(route):
        middle = (y + to_y) / 2
        path.append(f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}")
    return "".join(path)


def _moved(svg: str, x: float, y: float) -> str:
    return f'<g transform="translate({x:.1f} {y:.1f})">{svg}</g>\n'


def _node(node: Node) -> _Drawn:
    """Return a node: its operation, the values that it defines, its cost, and its blocks."""
    lines = [*_lines(node)]
    boxes = [_block(box) for box in node.boxes]
    inner = sum(box.width + _PAD for box in boxes) - _PAD
    text_width = max(len(line) for line, _ in lines) * _LETTER
    width = max(text_width, inner) + 2 * _PAD
    top = len(lines) * _LINE + 2 * _PAD - 4
    height = top + (max(box.height for box in boxes) + _PAD if boxes else 0)
    texts = "".join(
        f'<text x="{_PAD:.0f}" y="{_PAD + 10 + _LINE * row:.0f}"{kind}>{escape(line)}</text>'
        for row, (line, kind) in enumerate(lines)
    )
    x = _PAD
    for box in boxes:
        texts += _moved(box.svg, x, top)
        x += box.width + _PAD
    kind = "holder" if boxes else "call" if node.calls else node.kind.value
    round_ = 12 if node.kind in (NodeKind.PARAMETER, NodeKind.RESULTS) else 4
    svg = (
        f'<g class="node {kind}"><title>{escape(node.details())}</title>'
        f'<rect width="{width:.1f}" height="{height:.1f}" rx="{round_}"/>{texts}</g>'
    )
    if node.calls:
        svg = f'<a href="#{_anchor(node.calls[0])}">{svg}</a>'
    return _Drawn(width, height, svg)


def _lines(node: Node) -> Iterator[tuple[str, str]]:
    """Yield the lines of a node with the attribute of each that chooses its style."""
    if node.kind is not NodeKind.PARAMETER:
        yield _short(node.label), ' class="name"'
    for output in node.outputs[:_MOST_OUTPUTS]:
        yield _short(str(output)), ""
    if len(node.outputs) > _MOST_OUTPUTS:
        yield f"and {len(node.outputs) - _MOST_OUTPUTS} more", ""
    flops = dict(node.cost).get("flops", "0")
    if flops != "0":
        yield _short(f"flops: {flops}"), ' class="faint"'


def _block(box: Box) -> _Drawn:
    """Return a block with its head above its nodes."""
    drawn = _contents(box)
    head = _short(box.label)
    width = max(drawn.width, len(head) * _LETTER) + 2 * _PAD
    top = _LINE + 2 * _PAD
    height = top + drawn.height + _PAD
    svg = (
        f'<g class="block"><rect width="{width:.1f}" height="{height:.1f}" rx="4"/>'
        f'<text x="{_PAD:.0f}" y="{_PAD + 10:.0f}">{escape(head)}</text>'
        f"{_moved(drawn.svg, (width - drawn.width) / 2, top)}</g>"
    )
    return _Drawn(width, height, svg)


def _short(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 3]}..."
