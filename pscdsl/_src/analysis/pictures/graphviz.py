"""Graphs of programs in DOT, the language of Graphviz: a cluster for each box."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pscdsl._src.analysis.pictures.graph import Box, EdgeKind, FunctionBox, Node, NodeKind

_SHAPES = {
    NodeKind.PARAMETER: "shape=box, style=rounded",
    NodeKind.EQUATION: "shape=box",
    NodeKind.EFFECT: "shape=note",
    NodeKind.RESULTS: "shape=plaintext",
}


def write(functions: Sequence[FunctionBox], title: str) -> str:
    """Return one directed graph with a cluster for each function."""
    lines = [f"digraph {_quoted(title)} {{", "  compound=true;"]
    lines.append('  node [fontname="monospace", fontsize=10];')
    ends = {each.name: each.body.nodes[-1].id for each in functions}
    for each in functions:
        head = "\n".join([*each.signature, *(f"{name}: {text}" for name, text in each.cost)])
        lines += _cluster(each.body, head, "  ")
    for function in functions:
        for node in function.body.walk():
            lines += [f"  {line}" for line in _edges(node, ends)]
    return "\n".join([*lines, "}"])


def _cluster(box: Box, label: str, indent: str) -> Iterator[str]:
    yield f"{indent}subgraph {_quoted(f'cluster {box.id}')} {{"
    inner = indent + "  "
    yield f"{inner}label={_quoted(label)}; labeljust=l; fontname=monospace; fontsize=10;"
    for node in box.nodes:
        yield from _node(node, inner)
    yield f"{indent}}}"


def _node(node: Node, indent: str) -> Iterator[str]:
    """Yield a node; one with blocks is in a cluster of its own with theirs."""
    attributes = f"label={_quoted(node.text())}, tooltip={_quoted(node.details())}"
    line = f"{_quoted(node.id)} [{attributes}, {_SHAPES[node.kind]}];"
    if not node.boxes:
        yield indent + line
        return
    yield f"{indent}subgraph {_quoted(f'cluster {node.id}')} {{"
    yield f"{indent}  label={_quoted(node.name)}; labeljust=l; style=dashed;"
    yield f"{indent}  {line}"
    for box in node.boxes:
        yield from _cluster(box, box.label, indent + "  ")
    yield f"{indent}}}"


def _edges(node: Node, ends: dict[str, str]) -> Iterator[str]:
    """Yield the edges that end at a node, and those to the functions that it calls."""
    for edge in node.edges:
        style = "" if edge.kind is EdgeKind.USE else " [style=dashed]"
        yield f"{_quoted(edge.source)} -> {_quoted(node.id)}{style};"
    for name in node.calls:
        head = _quoted(f"cluster {name}")
        style = f"[lhead={head}, style=dotted, constraint=false]"
        yield f"{_quoted(node.id)} -> {_quoted(ends[name])} {style};"


def _quoted(text: str) -> str:
    """Return a quoted string, in which lines are aligned to the left."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    lines = escaped.split("\n")
    return '"' + "".join(f"{line}\\l" for line in lines) + '"' if lines[1:] else f'"{escaped}"'
