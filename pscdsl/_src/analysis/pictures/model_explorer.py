"""Graphs of programs as JSON that Google's Model Explorer reads.

A function is a graph, which the nodes of its calls name as a subgraph. An equation with blocks is
a group: its blocks are groups in it, and its own node, after them, has their results.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from pscdsl._src.analysis.pictures.graph import Box, Edge, FunctionBox, Node, Output
from pscdsl.typing.dims import show


def write(functions: Sequence[FunctionBox], title: str) -> str:
    """Return a collection of graphs, one for each function."""
    return json.dumps({"label": title, "graphs": [_graph(each) for each in functions]}, indent=1)


def _graph(function: FunctionBox) -> dict[str, Any]:
    groups: dict[str, dict[str, str]] = {
        "": {"signature": "\n".join(function.signature), **dict(function.cost)}
    }
    nodes = [*_nodes(function.body, "", groups)]
    return {"id": function.name, "nodes": nodes, "groupNodeAttributes": groups}


def _nodes(box: Box, inside: str, groups: dict[str, dict[str, str]]) -> Iterator[dict[str, Any]]:
    """Yield the nodes of a box, and note the attributes of the groups in it."""
    for node in box.nodes:
        namespace = inside
        if node.boxes:
            number = node.id.rpartition(":")[2]
            namespace = _path(inside, f"{node.name} {number}")
            groups[namespace] = dict(_attributes(node))
        for each in node.boxes:
            label = each.id.rpartition("/")[2]
            path = _path(namespace, label)
            groups[path] = {"block": each.label}
            yield from _nodes(each, path, groups)
        yield _node(node, namespace)


def _node(node: Node, namespace: str) -> dict[str, Any]:
    return {
        "id": node.id,
        "label": node.label if node.name == "parameter" else " ".join([node.name, *node.calls]),
        "namespace": namespace,
        "subgraphIds": [*node.calls],
        "attrs": _pairs(_attributes(node)),
        "incomingEdges": [_edge(each) for each in node.edges],
        "outputsMetadata": [
            {"id": str(place), "attrs": _pairs(_described(each))}
            for place, each in enumerate(node.outputs)
        ],
    }


def _edge(edge: Edge) -> dict[str, str]:
    place = edge.input if edge.kind.value == "use" else f"{edge.kind.value} {edge.input}"
    return {
        "sourceNodeId": edge.source,
        "sourceNodeOutputId": str(edge.output),
        "targetNodeInputId": str(place),
    }


def _attributes(node: Node) -> Iterator[tuple[str, str]]:
    yield "text", node.text()
    yield from node.cost
    if node.source:
        yield "source", "\n".join(node.source)


def _described(output: Output) -> Iterator[tuple[str, str]]:
    yield "name", output.name
    yield "dtype", str(output.type.dtype)
    yield "shape", f"[{' '.join(map(show, output.type.shape))}]"


def _pairs(attributes: Iterator[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in attributes]


def _path(inside: str, name: str) -> str:
    """Return a namespace in another one; a slash would separate its parts."""
    part = name.replace("/", "|")
    return f"{inside}/{part}" if inside else part
