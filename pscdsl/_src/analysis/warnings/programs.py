"""A finished program as the rules see it: definitions, uses and equal expressions."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from pscdsl._src.ir.primitive import Primitive, Types
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Literal, Origin, Var, walk
from pscdsl._src.primitives.control import Call, Control
from pscdsl._src.primitives.elementwise import Convert, Elementwise
from pscdsl._src.primitives.shaping import Broadcast, Reshape
from pscdsl.typing.diagnostics import Span
from pscdsl.typing.dims import Size

_ALIKE = 7
"""The depth to which two expressions are compared."""


class LiveProgram:
    """The equations of a function that its results depend on, nested blocks included."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self._by_kind: dict[object, list[tuple[Block, Equation]]] = {}
        self._definitions: dict[Var, Equation] = {}
        self._outside: dict[Var, Atom] = {}
        """The outer atoms of parameters that capture them."""
        self._uses: dict[Var, list[Equation]] | None = None
        self._blocks: list[Block] = []
        self._add(function.body)

    def _add(self, block: Block) -> None:
        self._blocks.append(block)
        live = set(block.results)
        equations: list[Equation] = []
        for equation in reversed(block.equations):
            if not live.isdisjoint(equation.outputs):
                live.update(equation.inputs)
                equations.append(equation)
        for equation in reversed(equations):
            primitive = equation.primitive
            kind = primitive if isinstance(primitive, Elementwise) else type(primitive)
            self._by_kind.setdefault(kind, []).append((block, equation))
            for var in equation.outputs:
                self._definitions[var] = equation
            self._enter(equation)

    def _enter(self, equation: Equation) -> None:
        """Go into the blocks of an equation."""
        if not isinstance(equation.primitive, Control):
            return
        layout = equation.primitive.layout
        operands = layout.operands(equation.inputs)
        for region in layout.regions:
            captured = [atom for group in layout.captured(region) for atom in operands[group]]
            self._outside.update(zip(region.block.params, captured, strict=False))
            self._add(region.block)

    def placed(self, *kinds: Elementwise | type[Primitive]) -> Iterator[tuple[Block, Equation]]:
        """Yield the equations of elementwise functions or primitive classes, and their blocks."""
        for kind in kinds:
            yield from self._by_kind.get(kind, ())

    def made(self, *kinds: Elementwise | type[Primitive]) -> Iterator[Equation]:
        """Yield the equations of elementwise functions or classes of primitives."""
        for _, equation in self.placed(*kinds):
            yield equation

    def source(self, atom: Atom) -> Atom:
        """Return the original atom of a captured variable."""
        while isinstance(atom, Var) and atom in self._outside:
            atom = self._outside[atom]
        return atom

    def definition(self, atom: Atom) -> Equation | None:
        """Return the equation that gives a variable its value; None for parameters and literals."""
        atom = self.source(atom)
        return self._definitions.get(atom) if isinstance(atom, Var) else None

    def bare(self, atom: Atom) -> Atom:
        """Return the atom behind repetitions and casts between floating-point types."""
        while True:
            atom = self.source(atom)
            at = self.definition(atom)
            if at is None or not _repeats(at):
                return atom
            atom = at.inputs[0]

    def made_by(self, atom: Atom) -> Equation | None:
        """Return the equation of the bare atom, even in a called function."""
        atom = self.bare(atom)
        at = self.definition(atom)
        if at is None or not isinstance(at.primitive, Call):
            return at
        inner = LiveProgram(at.primitive.function)
        place = at.outputs.index(atom)
        self._definitions.update(inner._definitions)
        return self.made_by(at.primitive.function.body.results[place])

    def alike(self, a: Atom, b: Atom, depth: int = _ALIKE) -> bool:
        """Return whether two atoms are the same expression, up to repetition along axes."""
        a, b = self.bare(a), self.bare(b)
        if a is b:
            return True
        if isinstance(a, Literal) or isinstance(b, Literal):
            return isinstance(a, Literal) and isinstance(b, Literal) and a.value == b.value
        one, other = self.definition(a), self.definition(b)
        if one is None or other is None or not depth or one.primitive != other.primitive:
            return False
        if len(one.inputs) != len(other.inputs) or one.outputs.index(a) != other.outputs.index(b):
            return False
        return all(map(self.alike, one.inputs, other.inputs, [depth - 1] * len(one.inputs)))

    def ancestors(self, atom: Atom, depth: int) -> Iterator[Equation]:
        """Yield the equations that an atom comes from, up to some steps back."""
        at = self.definition(atom)
        if at is not None:
            yield at
            if depth:
                for operand in at.inputs:
                    yield from self.ancestors(operand, depth - 1)

    @property
    def uses(self) -> Mapping[Var, list[Equation]]:
        """The equations that take each variable as an operand, in its own block."""
        if self._uses is None:
            self._uses = {}
            for group in self._by_kind.values():
                for _, equation in group:
                    for atom in equation.inputs:
                        if isinstance(atom, Var):
                            self._uses.setdefault(atom, []).append(equation)
        return self._uses

    def is_result(self, var: Var) -> bool:
        """Return whether a variable is a result of some block."""
        return any(var in block.results for block in self._blocks)


def _repeats(at: Equation) -> bool:
    primitive = at.primitive
    if isinstance(primitive, Convert):
        return primitive.dtype.is_float and at.inputs[0].type.dtype.is_float
    if isinstance(primitive, Reshape):
        old = [size for size in at.inputs[0].type.shape if size != 1]
        return old == [size for size in primitive.shape if size != 1]
    return isinstance(primitive, Broadcast)


# The user's text of a typed program's parts, if it is available.


_LONGEST = 60
"""A longer text is no help in a message."""


class SourceText(Protocol):
    """The text of a module."""

    lines: list[str]

    def locate(self, line: int) -> tuple[str, int]:
        """Return the path and the line of a place in a line of the text."""
        ...


class Wording:
    """Looks up source text: in the source of the function, or in the file that a place names."""

    def __init__(self, source: SourceText) -> None:
        self._source = source
        self._rows: dict[tuple[str, int], int] | None = None

    def text(self, span: Span) -> str:
        """Return the text of a span on one line; empty if it is not available."""
        first, lines = self._row(span.path, span.line), self._source.lines
        if first is None:
            first, lines = span.line, linecache.getlines(span.path)
        count = span.end_line - span.line + 1
        rows = [row.rstrip("\r\n") for row in lines[first - 1 : first - 1 + count]]
        if not rows:
            return ""
        rows[-1] = rows[-1][: span.end_column - 1]
        rows[0] = rows[0][span.column - 1 :]
        return " ".join(" ".join(rows).split())

    def _row(self, path: str, line: int) -> int | None:
        """Return the line of the function's source at a place; None if it is elsewhere."""
        locate = self._source.locate
        if locate(line) == (path, line):
            return line
        if self._rows is None:
            self._rows = {locate(row): row for row in range(1, len(self._source.lines) + 1)}
        return self._rows.get((path, line))

    def expression(self, span: Span) -> ast.expr | None:
        """Return the expression at a span, if it is one."""
        try:
            return ast.parse(self.text(span) or ".", mode="eval").body
        except (SyntaxError, ValueError, RecursionError):
            return None

    def operation(self, span: Span) -> str:
        """Return the operation at a span: a function's last name, or the class of an operator."""
        text = self.text(span)
        try:
            tree: ast.AST = ast.parse(text).body[0] if text else ast.Pass()
        except (SyntaxError, ValueError, RecursionError, IndexError):
            return ""
        match tree.value if isinstance(tree, ast.Expr) else tree:
            case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
                return name
            case ast.BinOp(op=operator) | ast.AugAssign(op=operator):
                return type(operator).__name__
            case ast.Compare(ops=[operator]):
                return type(operator).__name__
            case ast.Subscript():
                return "Subscript"
            case _:
                return ""

    def name(self, program: LiveProgram, atom: Atom) -> str:
        """Return the text of an atom: a parameter's name, a result's expression."""
        atom = program.source(atom)
        if isinstance(atom, Literal):
            return repr(atom.value)
        at = program.definition(atom)
        if at is None:
            return atom.hint if atom.hint.replace(".", "_").isidentifier() else ""
        tree = self.expression(at.span)
        found = "" if tree is None else ast.unparse(tree)
        return found if len(found) <= _LONGEST else ""

    def operand(self, program: LiveProgram, at: Equation, position: int) -> str:
        """Return the text of an equation's operand at the span of the equation."""
        tree = self.expression(at.span)
        found: ast.expr | None = None
        if isinstance(tree, ast.Call) and position < len(tree.args):
            found = tree.args[position]
        elif isinstance(tree, ast.BinOp):
            found = (tree.left, tree.right)[position]
        elif isinstance(tree, ast.Compare) and len(tree.comparators) == 1:
            found = (tree.left, *tree.comparators)[position]
        if found is None or isinstance(found, ast.Starred):
            return self.name(program, at.inputs[position])
        text = ast.unparse(found)
        return text if len(text) <= _LONGEST else ""

    def index(self, span: Span, axis: int) -> str:
        """Return the index in `x[i]`, `np.take(x, i)` or a dynamic slice; otherwise empty."""
        tree = self.expression(span)
        operation = self.operation(span)
        index: ast.expr | None = None
        if isinstance(tree, ast.Subscript):
            index = tree.slice
        elif isinstance(tree, ast.Call):
            position = 2 if operation == "dynamic_update" else 1
            index = tree.args[position] if position < len(tree.args) else None
        if operation.startswith("dynamic") and isinstance(index, ast.Tuple | ast.List):
            index = index.elts[axis] if axis < len(index.elts) else None
        if index is None or isinstance(index, ast.Tuple | ast.List | ast.Starred):
            return ""
        found = ast.unparse(index)
        return found if len(found) <= _LONGEST else ""

    def count(self, array: Var | None, axis: int, size: Size) -> str:
        """Return the text of the size of an array's axis."""
        if isinstance(size, int):
            return str(size)
        hint = "" if array is None else array.hint
        return f"{hint}.shape[{axis}]" if hint.replace(".", "_").isidentifier() else str(size)


# A program as the source has it: with the origins of derivatives and batches in place of these.
#
# Warnings are about the user's code. They ignore what a derivative computes in addition, and
# include what it omits because no result depends on it.


@dataclass(frozen=True)
class Derived(Primitive):
    """The results of a derivative or a batch, with only their types."""

    types: Types


def as_written(function: Function) -> Function:
    """Return the function with the origins of its derivatives and batches, and `Derived`."""
    if not function.origins:
        return function
    return replace(function, body=_Written(function.origins).block(function.body))


class _Written:
    def __init__(self, origins: Mapping[Equation, Origin]) -> None:
        self.origins = origins
        self.values: dict[Atom, Atom] = {}
        """The atoms of the new program for variables of the old one, where they differ."""

    def block(self, block: Block) -> Block:
        """Return a block, with other equations."""
        equations = self._equations(block)
        return Block(block.params, tuple(equations), tuple(map(self._value, block.results)))

    def _value(self, atom: Atom) -> Atom:
        return atom if isinstance(atom, Literal) else self.values.get(atom, atom)

    def _equations(self, block: Block) -> list[Equation]:
        last = {atom: at for at, each in enumerate(block.equations) for atom in each.inputs}
        last.update(dict.fromkeys(block.results, len(block.equations)))
        equations: list[Equation] = []
        end = 0
        for at, equation in enumerate(block.equations):
            origin = self.origins.get(equation)
            if at < end:
                continue
            if origin is None:
                equations.append(self._equation(equation))
                continue
            end = at + origin.count
            outputs = [var for each in block.equations[at:end] for var in each.outputs]
            equations += self._origin(
                origin, equation, [v for v in outputs if last.get(v, 0) >= end]
            )
        return equations

    def _origin(self, origin: Origin, equation: Equation, wanted: Sequence[Var]) -> list[Equation]:
        """Return the equations of an origin, and an equation for the additional results."""
        inputs = tuple(map(self._value, origin.inputs))
        found: list[Equation] = []
        if origin.block is not None:
            self.values.update(zip(origin.block.params, inputs, strict=True))
            found = self._equations(origin.block)
            results = tuple(map(self._value, origin.block.results))
            for old, new in zip(origin.outputs, results, strict=True):
                if old in wanted and old.type == new.type:
                    self.values[old] = new
            inputs = (*inputs, *results)
        others = tuple([var for var in wanted if var not in self.values])
        derived = Derived(tuple([var.type for var in others]))
        return [*found, Equation(derived, inputs, others, equation.span)]

    def _equation(self, equation: Equation) -> Equation:
        primitive = equation.primitive
        if isinstance(primitive, Control) and any(
            each in self.origins for block in primitive.blocks() for each in walk(block)
        ):
            primitive = primitive.with_blocks([self.block(block) for block in primitive.blocks()])
        inputs = tuple(map(self._value, equation.inputs))
        return Equation(primitive, inputs, equation.outputs, equation.span)
