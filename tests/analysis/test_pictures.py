"""Pictures of typed programs: the graph holds all of the text form, and each writer all of it."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from html import unescape
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

from pscdsl._src.analysis.cost import cost
from pscdsl._src.analysis.pictures import graphviz, model_explorer, page
from pscdsl._src.analysis.pictures.graph import (
    Box,
    Edge,
    EdgeKind,
    FunctionBox,
    Node,
    NodeKind,
    graph,
)
from pscdsl._src.analysis.pictures.layers import Arrow, arrange
from pscdsl._src.analysis.show import show
from pscdsl._src.ir.program import Block, Equation, Function, Literal, Var, acts, walk
from pscdsl._src.kernels.kernel import load_kernel
from tests.support.random_programs import RandomProgram

KERNELS = '''\
import numpy as np
import pscdsl as psc
from pscdsl import f32, i32


@psc.kernel
def step(x: f32["n"], y: f32["n"]) -> f32["n"]:
    return np.where(x > 0, np.sin(x) * y, y)


@psc.kernel
def descent(x: f32["n"], w: f32["n n"], steps: i32) -> f32:
    """Print a <b>text</b> with "quotes", a \\\\ and an end of line."""
    y = x
    for i in range(steps):
        y = (y + x / y) / 2 + w @ step(y, x)
        psc.debug.print('<b>"{i}"</b> \\\\ & \\n{y}', i=i, y=y)
    if steps > 4:
        y = psc.scan(lambda c, row: (c + row, c), y, w)[0]
    psc.check(y[0] < 1, "large")
    return np.sum(y)


@psc.kernel
def positive(x: f32["n"]) -> f32["n"]:
    psc.debug.print("sum {s}", s=np.sum(x))
    return np.exp(x)


@psc.kernel
def loss(w: f32["h h"], xs: f32["t h"], h: f32["h"]) -> f32:
    for x in xs:
        h = np.tanh(w @ h + step(x, h))
    return np.sum(h * h)


@psc.kernel
def solved(a: f32["n n"], b: f32["n"]) -> f32["n"]:
    return np.linalg.solve(a, b)


gradient = psc.grad(loss)
'''
NAMES = ("descent", "positive", "loss", "solved", "gradient")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Function]:
    path = tmp_path_factory.mktemp("pictures") / "kernels.py"
    path.write_text(KERNELS, encoding="utf-8")
    return {name: load_kernel(path, name).ir() for name in NAMES}


@lru_cache(maxsize=1)
def drawn() -> tuple[Function, ...]:
    return tuple([RandomProgram(seed, 20).function() for seed in range(40)])


@pytest.fixture
def programs(written: Mapping[str, Function]) -> tuple[Function, ...]:
    return (*written.values(), *drawn())


def text(functions: tuple[FunctionBox, ...]) -> str:
    """The text form, from nothing but the graph."""
    return "\n\n".join(
        "\n".join([*each.signature, *lines(each.body, "  ")]) for each in functions
    ) + ("\n")


def lines(box: Box, indent: str) -> Iterator[str]:
    for node in box.nodes:
        if node.kind is not NodeKind.PARAMETER:
            yield indent + node.text()
        for inner in node.boxes:
            yield f"{indent}  {inner.label}:"
            yield from lines(inner, indent + "    ")


def test_the_graph_holds_the_text_form(programs: tuple[Function, ...]) -> None:
    for function in programs:
        assert text(graph([function])) == show(function)


def pairs(function: Function) -> Iterator[tuple[Box, Block]]:
    """The boxes of a function with their blocks, of which each must have as many nested ones."""
    due = [(graph([function])[0].body, function.body)]
    while due:
        box, block = due.pop()
        yield box, block
        for node, equation in zip(equations(box), block.equations, strict=True):
            due += zip(node.boxes, equation.primitive.blocks(), strict=True)


def equations(box: Box) -> list[Node]:
    return [each for each in box.nodes if each.kind in (NodeKind.EQUATION, NodeKind.EFFECT)]


def test_every_equation_is_one_node(programs: tuple[Function, ...]) -> None:
    for function in programs:
        (first, *_) = graph([function])
        found = [node for node in first.body.walk() if node.kind.value in ("equation", "effect")]
        assert len(found) == len([*walk(function.body)])
        for box, block in pairs(function):
            assert [*box.nodes[: len(block.params)], *equations(box), box.nodes[-1]] == [*box.nodes]
            for node, equation in zip(equations(box), block.equations, strict=True):
                assert [each.type for each in node.outputs] == [v.type for v in equation.outputs]
                assert (node.kind is NodeKind.EFFECT) == acts(equation)


def test_every_use_is_one_edge_from_the_definition(programs: tuple[Function, ...]) -> None:
    for function in programs:
        for box, block in pairs(function):
            defined: dict[tuple[str, int], Var] = {}
            for node, var in zip(box.nodes, block.params, strict=False):
                defined[node.id, 0] = var
            ends: list[tuple[Node, Equation | None]] = [(box.nodes[-1], None)]
            for node, equation in zip(equations(box), block.equations, strict=True):
                defined.update({(node.id, i): var for i, var in enumerate(equation.outputs)})
                ends.append((node, equation))
            for node, each in ends:
                atoms = block.results if each is None else each.inputs
                uses = [edge for edge in node.edges if edge.kind is EdgeKind.USE]
                assert {edge.input: defined[edge.source, edge.output] for edge in uses} == {
                    place: a for place, a in enumerate(atoms) if not isinstance(a, Literal)
                }
                assert len({edge.input for edge in uses}) == len(uses)


def test_edges_enter_and_leave_blocks_where_values_do(programs: tuple[Function, ...]) -> None:
    for function in programs:
        for box, block in pairs(function):
            here = {node.id: node for node in box.nodes}
            for node, equation in zip(equations(box), block.equations, strict=True):
                used = {(edge.source, edge.output) for edge in of_kind(node, EdgeKind.USE)}
                ends = [(inner.nodes[-1].id, inner) for inner in node.boxes]
                leaving = Counter(edge.source for edge in of_kind(node, EdgeKind.LEAVE))
                blocks = equation.primitive.blocks()
                assert leaving == Counter(
                    {end: len(b.results) for (end, _), b in zip(ends, blocks, strict=True)}
                )
                for inner in node.boxes:
                    for parameter in inner.nodes:
                        for edge in of_kind(parameter, EdgeKind.ENTER):
                            assert parameter.kind is NodeKind.PARAMETER
                            assert (edge.source, edge.output) in used
                            given = here[edge.source].outputs[edge.output].type
                            taken = parameter.outputs[0].type
                            assert taken.dtype is given.dtype
                            assert taken.shape == given.shape[given.rank - taken.rank :]


def of_kind(node: Node, kind: EdgeKind) -> list[Edge]:
    return [edge for edge in node.edges if edge.kind is kind]


def test_ids_are_unique_and_calls_have_a_box(programs: tuple[Function, ...]) -> None:
    boxes = graph(programs)
    names = [each.name for each in boxes]
    nodes = [node for each in boxes for node in each.body.walk()]
    assert len({*names}) == len(names)
    assert len({node.id for node in nodes}) == len(nodes)
    assert {name for node in nodes for name in node.calls} <= {*names}


def test_costs_are_those_of_the_program(written: Mapping[str, Function]) -> None:
    for function in written.values():
        total = cost(function)
        box = graph([function])[0]
        assert dict(box.cost)["peak memory"] == f"{total.peak} bytes"
        assert dict(box.cost)["flops"].startswith(str(total.flops))
        assert ("one step counted" in dict(box.cost)["flops"]) == bool(total.loops)
    (step,) = [each for each in graph([written["descent"]]) if each.name == "step"]
    found = {node.name: dict(node.cost) for node in step.body.nodes}
    assert found["multiply"] == {"flops": "n", "bytes": "12*n"}


def test_the_source_is_a_line_of_the_file(written: Mapping[str, Function]) -> None:
    (box, *_) = graph([written["positive"]])
    (printed,) = [node for node in box.body.nodes if node.name == "print"]
    assert printed.kind is NodeKind.EFFECT
    assert not printed.outputs
    assert printed.source[0].endswith(': psc.debug.print("sum {s}", s=np.sum(x))')


# JSON for Model Explorer.


def test_the_json_has_the_schema_of_model_explorer(programs: tuple[Function, ...]) -> None:
    boxes = graph(programs)
    collection = json.loads(model_explorer.write(boxes, "a/b.py"))
    assert collection["label"] == "a/b.py"
    for found, box in zip(collection["graphs"], boxes, strict=True):
        assert found["id"] == box.name
        _check_graph(found, {each.name for each in boxes})
        nodes = {node.id: node for node in box.body.walk()}
        assert {each["id"] for each in found["nodes"]} == {*nodes}
        for each in found["nodes"]:
            node = nodes[each["id"]]
            assert len(each["incomingEdges"]) == len(node.edges)
            assert len(each["outputsMetadata"]) == len(node.outputs)


def _check_graph(found: dict[str, Any], graphs: set[str]) -> None:
    ids = {each["id"] for each in found["nodes"]}
    namespaces = {""}
    for each in found["nodes"]:
        for key in ("id", "label", "namespace"):
            assert isinstance(each[key], str)
        assert {*each["subgraphIds"]} <= graphs
        parts = each["namespace"].split("/")
        namespaces.update("/".join(parts[: end + 1]) for end in range(len(parts)))
        inputs: list[str] = []
        for edge in each["incomingEdges"]:
            assert {*edge} == {"sourceNodeId", "sourceNodeOutputId", "targetNodeInputId"}
            assert all(isinstance(value, str) for value in edge.values())
            assert edge["sourceNodeId"] in ids
            inputs.append(edge["targetNodeInputId"])
        for item in each["outputsMetadata"]:
            assert isinstance(item["id"], str)
            _check_pairs(item["attrs"])
        _check_pairs(each["attrs"])
    assert {*found["groupNodeAttributes"]} == namespaces
    for attributes in found["groupNodeAttributes"].values():
        assert all(isinstance(value, str) for value in attributes.values())


def _check_pairs(pairs: list[dict[str, str]]) -> None:
    for each in pairs:
        assert {*each} == {"key", "value"}
        assert all(isinstance(value, str) for value in each.values())


def test_namespaces_nest_as_blocks_do(programs: tuple[Function, ...]) -> None:
    for function in programs:
        (box, *_) = graph([function])
        collection = json.loads(model_explorer.write([box], ""))
        found = {each["id"]: each["namespace"] for each in collection["graphs"][0]["nodes"]}
        due = [(box.body, "")]
        while due:
            current, outside = due.pop()
            for node in current.nodes:
                if not node.boxes:
                    assert found[node.id] == outside
                    continue
                group = found[node.id]
                assert group.rpartition("/")[0] == outside
                inner = [found[each.nodes[-1].id] for each in node.boxes]
                assert len({*inner}) == len(inner)
                assert {each.rpartition("/")[0] for each in inner} == {group}
                due += zip(node.boxes, inner, strict=True)


# DOT.


def test_dot_has_a_cluster_for_each_box_and_an_arrow_for_each_edge(
    programs: tuple[Function, ...],
) -> None:
    boxes = graph(programs)
    nodes = [node for each in boxes for node in each.body.walk()]
    rows = [line.strip() for line in graphviz.write(boxes, "all").split("\n")]
    clusters = len(boxes) + sum(len(node.boxes) + bool(node.boxes) for node in nodes)
    assert sum(row.startswith("subgraph ") for row in rows) == clusters
    arrows = sum(len(node.edges) + len(node.calls) for node in nodes)
    assert sum(re.match(r'"[^"]*" -> "', row) is not None for row in rows) == arrows


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_draws_it_without_complaints(written: Mapping[str, Function]) -> None:
    given = graphviz.write(graph([*written.values()]), 'a "title" \\')
    done = subprocess.run(
        ["dot", "-Tsvg"], input=given, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    (printed,) = [
        node for node in graph([written["descent"]])[0].body.walk() if node.name == "print"
    ]
    assert f">{printed.label}<" in unescape(done.stdout)


# HTML.


def drawings(html: str) -> Iterator[ElementTree.Element]:
    for svg in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        yield ElementTree.fromstring(svg)


def test_a_page_draws_each_node_and_each_use(programs: tuple[Function, ...]) -> None:
    boxes = graph(programs)
    html = page.write(boxes, "all <of> them")
    for svg, box in zip(drawings(html), boxes, strict=True):
        nodes = [*box.body.walk()]
        groups = [each for each in svg.iter("g") if "class" in each.attrib]
        shown = [each for each in groups if each.attrib["class"].startswith("node")]
        assert sorted(_title(each) for each in shown) == sorted(node.details() for node in nodes)
        uses = sum(len(of_kind(node, EdgeKind.USE)) for node in nodes)
        assert sum(each.attrib["class"] == "edge" for each in groups) == uses
        blocks = sum(len(node.boxes) for node in nodes)
        assert sum(each.attrib["class"] == "block" for each in groups) == blocks


def _title(group: ElementTree.Element) -> str:
    title = group.find("title")
    assert title is not None
    return title.text or ""


def test_a_page_loads_and_runs_nothing(programs: tuple[Function, ...]) -> None:
    html = page.write(graph(programs), "<script>alert(1)</script>")
    assert not re.search(r"<(script|img|link|iframe|object)\b|\bsrc=|@import|url\(", html)
    assert {*re.findall(r'href="(.)', html)} == {"#"}
    assert "default-src 'none'" in html
    for target in re.findall(r'href="#([^"]*)"', html):
        assert f'<section id="{target}">' in html


Rectangle = tuple[float, float, float, float]


def test_rectangles_nest_and_hold_their_texts(programs: tuple[Function, ...]) -> None:
    for svg in drawings(page.write(graph(programs), "")):
        whole = (-1.0, -1.0, float(svg.attrib["width"]), float(svg.attrib["height"]))
        _check_inside(svg, whole, 0.0, 0.0)


def _check_inside(part: ElementTree.Element, outer: Rectangle, x: float, y: float) -> None:
    """Check that the rectangles and texts of a part are in a rectangle around them."""
    if found := re.fullmatch(r"translate\((\S+) (\S+)\)", part.attrib.get("transform", "")):
        x, y = x + float(found[1]), y + float(found[2])
    rectangle = part.find("rect")
    if rectangle is not None:
        width, height = float(rectangle.attrib["width"]), float(rectangle.attrib["height"])
        assert _holds(outer, (x, y, width, height))
        outer = (x, y, width, height)
    for child in part:
        if child.tag == "text":
            left, baseline = float(child.attrib["x"]), float(child.attrib["y"])
            place = (x + left, y + baseline - 9, 7.0 * len(child.text or ""), 12.0)
            assert _holds(outer, place)
        _check_inside(child, outer, x, y)


def _holds(outer: Rectangle, inner: Rectangle) -> bool:
    rounding = 1.0
    return all(
        outer[axis] <= inner[axis] + rounding
        and inner[axis] + inner[axis + 2] <= outer[axis] + outer[axis + 2] + rounding
        for axis in (0, 1)
    )


# The layout.


@pytest.mark.parametrize("seed", range(30))
def test_items_do_not_overlap_and_arrows_lead_down(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randrange(1, 60)
    sizes = [(rng.uniform(20, 400), rng.uniform(20, 200)) for _ in range(count)]
    outputs = [rng.randrange(1, 4) for _ in range(count)]
    arrows: list[Arrow] = []
    for target in range(1, count):
        for _ in range(rng.randrange(4)):
            source = rng.randrange(target)
            arrows.append(Arrow(source, rng.randrange(outputs[source]), target))
    found = arrange(sizes, arrows, outputs)
    assert found == arrange(sizes, arrows, outputs)
    places = [(*corner, *size) for corner, size in zip(found.corners, sizes, strict=True)]
    for index, place in enumerate(places):
        assert _holds((0, 0, found.width, found.height), place)
        assert not any(_overlap(place, other) for other in places[:index])
    assert all(y < places[-1][1] for _, y, _, _ in places[:-1])
    for arrow, route in zip(arrows, found.routes, strict=True):
        x, y, width, height = places[arrow.source]
        assert x < route[0][0] < x + width
        assert route[0][1] == y + height
        x, y, width, height = places[arrow.target]
        assert x < route[-1][0] < x + width
        assert route[-1][1] == y
        assert [point[1] for point in route] == sorted(point[1] for point in route)
        for upper, lower in pairwise(route):
            if upper[0] == lower[0]:  # vertical, beside the items of a layer
                line = (upper[0], upper[1] + 1, 0.0, lower[1] - upper[1] - 2)
                assert not any(_overlap(line, place) for place in places)


def _overlap(one: Rectangle, other: Rectangle) -> bool:
    return all(
        one[axis] < other[axis] + other[axis + 2] and other[axis] < one[axis] + one[axis + 2]
        for axis in (0, 1)
    )


def test_a_wide_layer_becomes_several() -> None:
    found = arrange([(100.0, 20.0)] * 101, [Arrow(i, 0, 100) for i in range(100)], [1] * 101)
    assert len({y for _, y in found.corners}) == 11
    assert found.width < 3500


def test_chains_beside_each_other_do_not_cross() -> None:
    """Items 0, 3, 4 and 1, 2, 5 are chains, so that one order of each layer has no crossing."""
    chains = [Arrow(0, 0, 3), Arrow(1, 0, 2), Arrow(3, 0, 4), Arrow(2, 0, 5)]
    sizes = [(50.0, 20.0)] * 7
    found = arrange(sizes, [*chains, Arrow(4, 0, 6), Arrow(5, 0, 6)], [1] * 7)
    assert all(x == to_x for (x, _), (to_x, _) in found.routes[:4])
