"""The text form of the typed program, for people to read.

Every value has one name in a function: the user's if there is one, else a letter. A nested block
uses the outer names of its captures. Called functions follow, once each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import singledispatch
from itertools import count
from string import ascii_lowercase
from typing import cast

from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Literal, Var
from pscdsl._src.primitives.control import Call, Control
from pscdsl._src.primitives.effects import TextEffect, ValueRecord
from pscdsl._src.primitives.elementwise import Elementwise
from pscdsl._src.primitives.shaping import Constant
from pscdsl.typing.array_types import paths, show_type
from pscdsl.typing.dtypes import DEFAULT, Kind

WIDTH = 100


def show(function: Function) -> str:
    """Return a function and all that it calls."""
    names = FunctionNames()
    shown: list[str] = []
    names.of(function)
    for each in names.found:  # which grows while it is walked
        shown.append("\n".join(FunctionText(each, names).lines()))
    return "\n\n".join(shown) + "\n"


def show_equation(equation: Equation) -> str:
    """Return one equation on one line, without the blocks in it."""
    names = _ValueNames(())
    outputs = ", ".join(f"{names.define(var)}: {var.type}" for var in equation.outputs)
    operands = " ".join(_atom(atom, names.define) for atom in equation.inputs)
    text = heading(equation.primitive, FunctionNames())
    made = (outputs, "=") if outputs else ()
    return " ".join([*made, text, *filter(None, [operands])])


class FunctionNames:
    """A name for every function that has been met; namesakes are numbered."""

    def __init__(self) -> None:
        self.found: list[Function] = []
        self._names: dict[Function, str] = {}
        self._counts: Counter[str] = Counter()

    def of(self, function: Function) -> str:
        """Return the name of a function, noting that it is called."""
        name = self._names.get(function)
        if name is None:
            self.found.append(function)
            self._counts[function.name] += 1
            nth = self._counts[function.name]
            name = function.name if nth == 1 else f"{function.name}.{nth}"
            self._names[function] = name
        return name


class _ValueNames:
    """The names of one function's values."""

    def __init__(self, sizes: Sequence[str]) -> None:
        self._names: dict[Atom, str] = {}
        self._taken: set[str] = set()
        self._avoided = frozenset(sizes)  # a letter that is a size too would be misread
        self._letters = map(_letters, count())
        self._numbered: dict[str, Iterator[str]] = {}

    def define(self, var: Atom, wanted: str = "") -> str:
        """Return the name of a variable, chosen now if it has none."""
        cached = self._names.get(var)
        if cached is None:
            wanted = wanted or (var.hint if isinstance(var, Var) else "")
            cached = self._names[var] = self._fresh(wanted)
            self._taken.add(cached)
        return cached

    def alias(self, var: Var, name: str) -> None:
        """Give a variable the name of the value that it represents."""
        self._names[var] = name

    def _fresh(self, wanted: str) -> str:
        candidates: Iterator[str]
        if not wanted:
            candidates = (name for name in self._letters if name not in self._avoided)
        elif wanted not in self._taken:
            return wanted
        else:
            candidates = self._numbered.setdefault(wanted, (f"{wanted}{i}" for i in count(2)))
        return next(name for name in candidates if name not in self._taken)


def _letters(index: int) -> str:
    """Name number `index` of a, b, …, z, aa, ab, and so on."""
    rest, last = divmod(index, 26)
    return (_letters(rest - 1) if rest else "") + ascii_lowercase[last]


def _atom(atom: Atom, name: Callable[[Atom], str]) -> str:
    if not isinstance(atom, Literal):
        return name(atom)
    dtype = atom.type.dtype
    text = str(atom.value)
    return text if dtype.kind is Kind.KEY or dtype is DEFAULT[dtype.kind] else f"{text}:{dtype}"


@dataclass(frozen=True, slots=True)
class Nested:
    """A block inside an equation, with its name and the operands of its first parameters."""

    label: str
    block: Block
    captured: Sequence[Atom] = ()


@singledispatch
def heading(primitive: Primitive, names: FunctionNames) -> str:
    """Return the primitive's name and its fields, except those with default values."""
    if not is_dataclass(primitive):
        return primitive.label
    counts: Collection[str] = ()
    if isinstance(primitive, Control):
        counts = [group.field for group in primitive.layout.groups]
    shown: list[str] = []
    for field in fields(primitive):
        value = getattr(primitive, field.name)
        if (
            not field.repr
            or field.name in counts
            or _holds_blocks(value)
            or (field.default is not MISSING and value == field.default)
        ):
            continue
        name = field.name.replace("_", " ")
        shown.append(name if value is True else f"{field.name}={_value(value, names)}")
    return f"{primitive.label}[{', '.join(shown)}]" if shown else primitive.label


@heading.register
def _(primitive: Elementwise, names: FunctionNames) -> str:
    return primitive.name


@heading.register
def _(primitive: Constant, names: FunctionNames) -> str:
    return repr(primitive)


@heading.register
def _(primitive: Call, names: FunctionNames) -> str:
    sizes = ", ".join(f"{name}={size}" for name, size in primitive.sizes)
    return f"call {names.of(primitive.function)}" + (f"[{sizes}]" if sizes else "")


@heading.register
def _(primitive: TextEffect, names: FunctionNames) -> str:
    return f"{primitive.label} {primitive.text!r}"


@heading.register
def _(primitive: ValueRecord, names: FunctionNames) -> str:
    return f"{primitive.label} {primitive.named.name!r}"


def groups(primitive: Primitive, inputs: Sequence[Atom]) -> list[tuple[str, Sequence[Atom]]]:
    """Return the operands after the heading, by purpose; regions show the others."""
    if not isinstance(primitive, Control) or isinstance(primitive, Call):
        return [("", inputs)]
    layout = primitive.layout
    captured = {group for region in layout.regions for group in layout.captured(region)}
    operands = layout.operands(inputs)
    return [(group.label, atoms) for group, atoms in operands.items() if group not in captured]


def nested(primitive: Primitive, inputs: Sequence[Atom]) -> Iterator[Nested]:
    """Yield the blocks below an equation."""
    if isinstance(primitive, Control):
        layout = primitive.layout
        operands = layout.operands(inputs)
        for region in layout.regions:
            captured = [atom for group in layout.captured(region) for atom in operands[group]]
            yield Nested(region.label or region.field, region.block, captured)


def _holds_blocks(value: object) -> bool:
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        return bool(items) and isinstance(items[0], Block)
    return isinstance(value, Block)


def _value(value: object, names: FunctionNames) -> str:
    if isinstance(value, Function):
        return names.of(value)
    if isinstance(value, tuple):
        items = [_value(item, names) for item in cast("tuple[object, ...]", value)]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    return str(value)


class FunctionText:
    """One function as lines, and the parts of them."""

    def __init__(self, function: Function, functions: FunctionNames) -> None:
        self.function = function
        self.functions = functions
        self.names = _ValueNames(function.dims)
        self.used = _used_atoms(function.body)

    def lines(self) -> Iterator[str]:
        """Yield the signature, then the body."""
        yield from self.signature()
        for fact in self.function.facts.facts:
            yield f"  assert {fact}"
        yield from self.block(self.function.body, "  ")

    def signature(self) -> Iterator[str]:
        """Yield the lines of the signature, which names the parameters."""
        function = self.function
        leaves = [path for name, tree in function.parameters for path, _ in paths(tree, name)]
        if len(leaves) != len(function.body.params):
            leaves = [""] * len(function.body.params)
        params = [
            f"{self.names.define(var, path)}: {var.type}"
            for var, path in zip(function.body.params, leaves, strict=True)
        ]
        dims = f"[{' '.join(function.dims)}]" if function.dims else ""
        name = f"{self.functions.of(function)}{dims}"
        result = str(function.result) if function.result else _types(function.body.results)
        line = f"{name}({', '.join(params)}) -> {result}"
        if len(line) <= WIDTH:
            yield line
        else:
            yield f"{name}("
            yield from (f"    {param}," for param in params)
            yield f") -> {result}"

    def block(self, block: Block, indent: str) -> Iterator[str]:
        """Yield the equations of a block and its results."""
        for equation in block.equations:
            yield from self.equation(equation, indent)
        yield f"{indent}{self.results(block)}"

    def results(self, block: Block) -> str:
        """Return the results of a block."""
        return f"-> {', '.join(self.atom(atom) for atom in block.results)}".rstrip()

    def atom(self, atom: Atom) -> str:
        """Return the text of an operand."""
        return _atom(atom, self.names.define)

    def equation(self, equation: Equation, indent: str) -> Iterator[str]:
        """Yield an equation, then the blocks in it."""
        operation = self.operation(equation)
        outputs = ", ".join(self.output(var) for var in equation.outputs)
        yield indent + (f"{outputs} = {operation}" if outputs else operation)
        for each in nested(equation.primitive, equation.inputs):
            head = self.enter(each)
            yield f"{indent}  {head}:"
            yield from self.block(each.block, indent + "    ")

    def operation(self, equation: Equation) -> str:
        """Return the primitive of an equation with its operands."""
        operands: list[str] = []
        for label, atoms in groups(equation.primitive, equation.inputs):
            if label and atoms:
                operands.append(f"{label}({', '.join(map(self.atom, atoms))})")
            elif atoms:
                operands.append(" ".join(map(self.atom, atoms)))
        return " ".join([heading(equation.primitive, self.functions), *operands])

    def output(self, var: Var) -> str:
        """Return a new variable with its type."""
        return f"{self.output_name(var)}: {var.type}"

    def output_name(self, var: Var) -> str:
        """Return the name of a new variable; an unused one has none."""
        return self.names.define(var) if var in self.used else "_"

    def enter(self, inner: Nested) -> str:
        """Return the head of a block, in which captured parameters get their outer names."""
        captured: list[str] = []
        for var, atom in zip(inner.block.params, inner.captured, strict=False):
            outside = self.atom(atom)
            if isinstance(atom, Literal):
                captured.append(f"{self.names.define(var)} = {outside}")
            else:
                self.names.alias(var, outside)
                captured.append(outside)
        own = [
            f"{self.names.define(var)}: {var.type}"
            for var in inner.block.params[len(inner.captured) :]
        ]
        line = inner.label + (f"({', '.join(own)})" if own else "")
        return f"{line} with {', '.join(dict.fromkeys(captured))}" if captured else line


def _used_atoms(block: Block) -> set[Atom]:
    used = set(block.results)
    for equation in block.equations:
        used.update(equation.inputs)
        for inner in equation.primitive.blocks():
            used |= _used_atoms(inner)
    return used


def _types(results: Sequence[Atom]) -> str:
    types = [show_type(atom.type.dtype, atom.type.shape) for atom in results]
    return types[0] if len(types) == 1 else f"({', '.join(types)})"
