"""Typed programs as graphs: a node for each equation, an edge for each use, a box for each block.

Values have the names of the text form. Blocks are closed, so an edge between two boxes either
enters a block, from an operand to a parameter, or leaves it, from its results to its equation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import count

from pscdsl._src.analysis.cost import Cost, cost, traffic, unbounded_loops
from pscdsl._src.analysis.show import FunctionNames, FunctionText, nested
from pscdsl._src.ir.program import (
    Atom,
    Block,
    Equation,
    Function,
    Literal,
    Var,
    acts,
    functions_in,
)
from pscdsl._src.primitives.control import Control
from pscdsl._src.primitives.effects import shown_at
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import NOWHERE, Failure, Span
from pscdsl.typing.dims import Size


class NodeKind(Enum):
    """The part of a program that a node represents."""

    PARAMETER = "parameter"
    EQUATION = "equation"
    EFFECT = "effect"
    """An equation that prints, records or checks, or runs something that does."""
    RESULTS = "results"
    """The end of a block, which uses its results."""


class EdgeKind(Enum):
    """The way of a value along an edge."""

    USE = "use"
    """From its definition to an equation, or to the results of a block."""
    ENTER = "enter"
    """From an operand of an equation to a parameter of a block in it."""
    LEAVE = "leave"
    """From the results of a block to the equation that holds the block."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A value that comes from an output of another node."""

    source: str
    """The id of the node."""
    output: int
    input: int
    kind: EdgeKind = EdgeKind.USE


@dataclass(frozen=True, slots=True)
class Output:
    """A value that a node defines."""

    name: str
    type: ArrayType

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


@dataclass(frozen=True, slots=True)
class Node:
    """A parameter, an equation, or the results of a block."""

    id: str
    kind: NodeKind
    name: str
    """The primitive, or the kind of node."""
    label: str
    """The text form of the right side."""
    outputs: tuple[Output, ...] = ()
    edges: tuple[Edge, ...] = ()
    """The edges that end here."""
    boxes: tuple[Box, ...] = ()
    """The blocks in it."""
    calls: tuple[str, ...] = ()
    """The names of the functions in it."""
    cost: tuple[tuple[str, str], ...] = ()
    """What one run costs, in words; empty if that is unknown."""
    source: tuple[str, ...] = ()
    """The lines that it comes from, innermost first."""

    def text(self) -> str:
        """Return the text form of the node, without the blocks in it."""
        outputs = ", ".join(map(str, self.outputs))
        if self.kind is NodeKind.PARAMETER:
            return outputs
        return f"{outputs} = {self.label}" if outputs else self.label

    def details(self) -> str:
        """Return all that is known of the node, as lines."""
        costs = [f"{name}: {amount}" for name, amount in self.cost]
        return "\n".join([self.text(), *costs, *self.source])


@dataclass(frozen=True, slots=True)
class Box:
    """A block: its parameters, its equations, and its results, which are the last node."""

    id: str
    label: str
    nodes: tuple[Node, ...]

    def walk(self) -> Iterator[Node]:
        """Yield all nodes in the box, in the order of the text form."""
        for node in self.nodes:
            yield node
            for box in node.boxes:
                yield from box.walk()


@dataclass(frozen=True, slots=True)
class FunctionBox:
    """A function: its body, and what is known of all of it."""

    name: str
    signature: tuple[str, ...]
    """The lines of the signature, and those of its preconditions."""
    body: Box
    cost: tuple[tuple[str, str], ...]


def graph(functions: Sequence[Function]) -> tuple[FunctionBox, ...]:
    """Return the boxes of functions and of all that they call, each once."""
    names = FunctionNames()
    for function in functions:
        names.of(function)
    return tuple([_Builder(each, names).function_box() for each in _growing(names.found)])


def _growing(functions: list[Function]) -> Iterator[Function]:
    yield from functions  # which grows while it is walked


class _Builder:
    """Builds the box of one function."""

    def __init__(self, function: Function, functions: FunctionNames) -> None:
        self.function = function
        self.functions = functions
        self.text = FunctionText(function, functions)
        self.name = functions.of(function)
        self.numbers = count(1)
        self.places: dict[Atom, tuple[str, int]] = {}

    def function_box(self) -> FunctionBox:
        """Return the box of the function."""
        signature = [*self.text.signature()]
        signature += [f"  assert {fact}" for fact in self.function.facts.facts]
        body = self.box(self.function.body, self.name, self.name)
        return FunctionBox(self.name, tuple(signature), body, _total(self.function))

    def box(
        self, block: Block, name: str, label: str, entering: Sequence[tuple[Edge, ...]] = ()
    ) -> Box:
        """Return the box of a block, given the edges that enter it at each parameter."""
        entering = entering or [()] * len(block.params)
        nodes = [self.parameter(*each) for each in zip(block.params, entering, strict=True)]
        nodes += [self.equation(each) for each in block.equations]
        text = self.text.results(block)
        uses = self.uses(block.results)
        nodes.append(Node(self.id(), NodeKind.RESULTS, "results", text, edges=uses))
        return Box(name, label, tuple(nodes))

    def parameter(self, var: Var, edges: tuple[Edge, ...]) -> Node:
        """Return the node of a parameter."""
        name = self.text.atom(var)
        node = Node(
            self.id(),
            NodeKind.PARAMETER,
            "parameter",
            name,
            (Output(name, var.type),),
            edges,
            source=_lines(var.origin),
        )
        self.places[var] = (node.id, 0)
        return node

    def equation(self, equation: Equation) -> Node:
        """Return the node of an equation, with the boxes of its blocks."""
        primitive, text = equation.primitive, self.text
        node_id, edges = self.id(), self.uses(equation.inputs)
        label = text.operation(equation)
        outputs = [Output(text.output_name(var), var.type) for var in equation.outputs]
        boxes: list[Box] = []
        leaving: list[Edge] = []
        for number, inner in enumerate(nested(primitive, equation.inputs)):
            head = text.enter(inner)
            entering = self.entering(equation, number)
            boxes.append(self.box(inner.block, f"{node_id}/{inner.label}", head, entering))
            end = boxes[-1].nodes[-1]
            leaving += [
                Edge(end.id, place, place, EdgeKind.LEAVE)
                for place, _ in enumerate(inner.block.results)
            ]
        self.places.update({var: (node_id, place) for place, var in enumerate(equation.outputs)})
        return Node(
            node_id,
            NodeKind.EFFECT if acts(equation) else NodeKind.EQUATION,
            primitive.label,
            label,
            tuple(outputs),
            (*edges, *leaving),
            tuple(boxes),
            tuple([self.functions.of(each) for each in functions_in(primitive)]),
            _cost(self.function.facts, equation),
            _lines(equation.span),
        )

    def entering(self, equation: Equation, number: int) -> list[tuple[Edge, ...]]:
        """Return the edges that enter a region at each parameter: none if no operand does."""
        assert isinstance(equation.primitive, Control)
        layout = equation.primitive.layout
        operands = layout.operands(equation.inputs)
        edges: list[tuple[Edge, ...]] = []
        for group in layout.regions[number].takes:
            atoms = operands.get(group)
            edges += (
                [()] * group.count
                if atoms is None
                else [self.edge(atom, 0, EdgeKind.ENTER) for atom in atoms]
            )
        return edges

    def uses(self, atoms: Sequence[Atom]) -> tuple[Edge, ...]:
        """Return an edge for each atom that is a variable."""
        return tuple([edge for place, atom in enumerate(atoms) for edge in self.edge(atom, place)])

    def edge(self, atom: Atom, place: int, kind: EdgeKind = EdgeKind.USE) -> tuple[Edge, ...]:
        """Return the edge from the definition of an atom; literals have none."""
        return () if isinstance(atom, Literal) else (Edge(*self.places[atom], place, kind),)

    def id(self) -> str:
        """Return the id of the next node."""
        return f"{self.name}:{next(self.numbers)}"


def _lines(span: Span) -> tuple[str, ...]:
    if span == NOWHERE:
        return ()
    return tuple([shown_at(each).strip() for each in span.frames()])


def _cost(facts: Assumptions, equation: Equation) -> tuple[tuple[str, str], ...]:
    inputs = tuple([atom.type for atom in equation.inputs])
    outputs = tuple([var.type for var in equation.outputs])
    try:
        flops = facts.simplify(equation.primitive.cost(inputs, outputs))
    except Failure:
        return ()
    moved = facts.simplify(traffic(equation))
    return _words(flops, moved, unbounded_loops(Block((), (equation,), ())))


def _total(function: Function) -> tuple[tuple[str, str], ...]:
    try:
        total: Cost = cost(function)
    except Failure:
        return ()
    return (*_words(total.flops, total.bytes, total.loops), ("peak memory", f"{total.peak} bytes"))


def _words(flops: Size, moved: Size, loops: Sequence[Span]) -> tuple[tuple[str, str], ...]:
    steps = " (one step counted)" if loops else ""
    return (("flops", f"{flops}{steps}"), ("bytes", f"{moved}{steps}"))
