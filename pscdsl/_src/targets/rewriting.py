"""A target, as tables that can be read, and typed programs rewritten by its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from pscdsl._src.interpreters.replay import closed
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, TargetHlo, Types
from pscdsl._src.ir.program import Atom, Block, Equation, Var, walk
from pscdsl._src.primitives.control import Control
from pscdsl._src.primitives.pointwise import Key, key_of
from pscdsl._src.primitives.regions import Layout, Nesting
from pscdsl._src.targets.forms import Context, Form, FormTranslation, Pass, Rewrite
from pscdsl._src.xla.lapack import ON_CPU, Routines
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.limits import MissingOnTarget
from pscdsl.typing.diagnostics import Failure

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Builder, Value


# Primitives of rewritten programs only: hints for the compiler, which compute nothing else.


@dataclass(frozen=True)
class Apart(Control):
    """A block that XLA compiles separately, as a function of its parameters."""

    body: Block

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        self.require(facts, "operands", operands, self.body.in_types)
        return self.body.out_types

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return here.block(self.body, operands)

    @cached_property
    def layout(self) -> Layout:
        return Layout.of(self.body)

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return hlo.block(self.body, operands)


@dataclass(frozen=True)
class Barrier(Primitive):
    """Arrays as they are; the compiler computes them first, and not once for each use."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        return operands

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return operands

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return hlo.op("optimization_barrier", operands, outputs)


@dataclass(frozen=True)
class ReadOften(Primitive):
    """An array as it is; several operations may read it, which could all compute it again."""

    def type_rule(self, facts: Assumptions, *operands: ArrayType) -> Types:
        return operands

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return operands

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        return operands


@FormTranslation
def call_apart(
    primitive: Apart, hlo: TargetHlo, operands: Sequence[H], inputs: Types, outputs: Types
) -> Sequence[H]:
    """Emit the call of a function, one for all blocks with the same computation."""
    return hlo.apart(primitive.body, operands)


# A target, as tables that can be read, and typed programs rewritten by its tables.


# A target: tables of how typed programs are treated for a device.


Row = TypeVar("Row", Rewrite, FormTranslation)


@dataclass(frozen=True, eq=False)
class Target:
    """Rewrites, translations and passes for a device; in a row, the first that applies is used.

    A primitive without an entry is emitted by its own rule, which is correct on every device.
    """

    name: str
    rewrites: Mapping[Key, tuple[Rewrite, ...]] = field(
        default_factory=dict[Key, tuple[Rewrite, ...]]
    )
    """The rules that replace equations by programs before anything is emitted."""
    translations: Mapping[Key, tuple[FormTranslation, ...]] = field(
        default_factory=dict[Key, tuple[FormTranslation, ...]]
    )
    """The rules that emit equations."""
    passes: tuple[Pass, ...] = ()
    """The passes over whole blocks, in order, before their equations are rewritten."""
    options: tuple[Form, ...] = ()
    """The forms that are options of the compiler."""
    routines: Routines = ON_CPU
    """The calls of the routines of linear algebra that StableHLO lacks."""
    host_calls: str = "xla_ffi_python_cpu_callback"
    """The custom call that runs a function on the host."""
    missing: Mapping[Key, str] = field(default_factory=dict[Key, str])
    """The primitives that it cannot compute, with a remedy for each."""

    def require(self, block: Block) -> None:
        """Raise a `Failure` about the first equation that it cannot compute, at any depth."""
        for equation in walk(block) if self.missing else ():
            instead = self.missing.get(key_of(equation.primitive))
            if instead is not None:
                missing = MissingOnTarget(
                    primitive=equation.primitive.label, target=self.name, instead=instead
                )
                raise Failure(missing).at(equation.span)

    def forms(self) -> Iterator[Form]:
        """Yield the forms that it has, some of them several times."""
        for table in (self.rewrites, self.translations):
            for row in table.values():
                yield from [each.form for each in row if each.form is not None]
        yield from [pass_.form for pass_ in self.passes]
        yield from self.options

    def keeping_effects(self) -> Target:
        """Return the target without the rules that ask which results of a block are used."""
        plain = {key: rows for key, rows in self.rewrites.items() if not _is_control(key)}
        return replace(self, rewrites=plain, passes=())

    def without(self, names: frozenset[str]) -> Target:
        """Return the target without some forms."""
        if not names:
            return self
        return replace(
            self,
            rewrites=_drop_forms(self.rewrites, names),
            translations=_drop_forms(self.translations, names),
            passes=tuple([pass_ for pass_ in self.passes if pass_.form.name not in names]),
            options=tuple([option for option in self.options if option.name not in names]),
        )


def _is_control(key: Key) -> bool:
    return isinstance(key, type) and issubclass(key, Control)


def _drop_forms(
    table: Mapping[Key, tuple[Row, ...]], names: frozenset[str]
) -> dict[Key, tuple[Row, ...]]:
    return {
        key: tuple([each for each in row if each.form is None or each.form.name not in names])
        for key, row in table.items()
    }


# Typed programs rewritten by a target's tables, from the outside to the inside.


P = TypeVar("P", bound=Primitive)
Define = Callable[[P, "Sequence[Value]"], "Sequence[Value]"]


def rewritten(
    target: Target, block: Block, here: Context, check: Callable[[str, Block], None]
) -> Block:
    """Return a block after the target's passes, with its equations and inner blocks rewritten.

    `check` gets the name of each pass and its result.
    """
    for pass_ in target.passes:
        changed = pass_.rule(block, here)
        if changed is not block:
            check(pass_.form.name, changed)
            block = changed
    return _rewrite_equations(target, block, here, check)


def _rewrite_equations(
    target: Target, block: Block, here: Context, check: Callable[[str, Block], None]
) -> Block:
    equations: list[Equation] = []
    known: dict[Atom, Atom] = {}
    changed = False
    for equation in block.equations:
        primitive, inputs = equation.primitive, equation.inputs
        if known:
            inputs = tuple([known.get(atom, atom) for atom in inputs])
        program = _instead(target, primitive, inputs, equation.outputs, here)
        if program is not None:
            program = rewritten(target, program, here, check)
            found = _insert(equations, program, inputs, equation)
            known.update(zip(equation.outputs, found, strict=True))
            changed = True
            continue
        if isinstance(primitive, Control):
            primitive = _rewrite_inside(target, primitive, here, check)
        if primitive is equation.primitive and inputs == equation.inputs:
            equations.append(equation)
        else:
            equations.append(Equation(primitive, inputs, equation.outputs, equation.span))
            changed = True
    if not changed:
        return block
    results = tuple([known.get(atom, atom) for atom in block.results])
    return Block(block.params, tuple(equations), results)


def _instead(
    target: Target,
    primitive: Primitive,
    inputs: Sequence[Atom],
    outputs: Sequence[Var],
    here: Context,
) -> Block | None:
    """Return the program that takes the place of an equation: by the first rewrite that applies."""
    row = target.rewrites.get(key_of(primitive))
    if not row and primitive.__class__.expansion is Primitive.expansion:
        return None
    types = tuple([atom.type for atom in inputs])
    if row:
        results = tuple([var.type for var in outputs])
        known = replace(here, operands=tuple(inputs))
        for each in row:
            program = each.rule(primitive, types, results, known)
            if program is not None:
                return program
    return primitive.expansion(types)


def _insert(
    equations: list[Equation], program: Block, inputs: Sequence[Atom], place: Equation
) -> list[Atom]:
    """Append a program's equations on `inputs`, with fresh variables; return its results."""
    names: dict[Atom, Atom] = dict(zip(program.params, inputs, strict=True))
    for equation in program.equations:
        outputs = tuple([Var(var.type, var.hint) for var in equation.outputs])
        operands = tuple([names.get(atom, atom) for atom in equation.inputs])
        equations.append(Equation(equation.primitive, operands, outputs, place.span))
        names.update(zip(equation.outputs, outputs, strict=True))
    return [names.get(atom, atom) for atom in program.results]


def _rewrite_inside(
    target: Target, primitive: Control, here: Context, check: Callable[[str, Block], None]
) -> Primitive:
    """Return a primitive with its blocks rewritten."""
    mine = _drop_passes(target) if isinstance(primitive, Apart) else target
    blocks: list[Block] = []
    for region in primitive.layout.regions:
        block, inner = region.block, here
        if region.nesting in (Nesting.BRANCH, Nesting.LOOP):
            in_loop = here.in_loop or region.nesting is Nesting.LOOP
            inner = replace(here, in_loop=in_loop, nested=True)
        run = region.nesting is not Nesting.NEVER
        blocks.append(rewritten(mine, block, inner, check) if run else block)
    return primitive.with_blocks(blocks)


@lru_cache(maxsize=16)
def _drop_passes(target: Target) -> Target:
    """Return the target without passes: a block in a separate function is not divided again."""
    return replace(target, passes=())


def defined(define: Define[P], primitive: P, inputs: Types) -> Block:
    """Return the program that `define` makes of a primitive's operands; sizes are numbers."""
    return _build_definition(define, primitive, inputs)


@lru_cache(maxsize=1024)
def _build_definition(define: Define[Any], primitive: Primitive, inputs: Types) -> Block:
    def build(here: Builder, params: list[Value]) -> Sequence[Value]:
        return define(primitive, params)

    return closed(Assumptions(), inputs, build)
