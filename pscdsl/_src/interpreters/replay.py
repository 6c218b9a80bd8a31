"""Programs appended to others, and closed blocks made from scratch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pscdsl._src.ir.builder import Builder, Program, Value
from pscdsl._src.ir.program import Atom, Block, Equation, Literal, Var
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dtypes import BOOL, I32, KEY


class Environment:
    """The values that the atoms of a block stand for, on the way through it."""

    def __init__(self, here: Builder, params: Sequence[Var], values: Sequence[Value]) -> None:
        self.here = here
        self.values: dict[Atom, Value] = dict(zip(params, values, strict=True))

    def __getitem__(self, atom: Atom) -> Value:
        if isinstance(atom, Literal):
            return Value(self.here, atom)
        return self.values[atom]

    def all(self, atoms: Sequence[Atom]) -> list[Value]:
        """The values of several atoms."""
        return [self[atom] for atom in atoms]


def append(here: Builder, equation: Equation, operands: Sequence[Value]) -> list[Value]:
    """An equation once more, of other operands; its types are derived again where these differ."""
    atoms = tuple([v.atom if v.builder is here else here.atom(v) for v in operands])
    types = [atom.type for atom in atoms]
    if types == [atom.type for atom in equation.inputs]:
        outputs = tuple([Var(var.type, var.hint) for var in equation.outputs])
    else:
        derived = equation.primitive.type_rule(here.facts, *types)
        outputs = tuple([Var(t, v.hint) for t, v in zip(derived, equation.outputs, strict=True)])
    here.equations.append(Equation(equation.primitive, atoms, outputs, here.program.span))
    return [Value(here, var) for var in outputs]


def replay(here: Builder, block: Block, operands: Sequence[Value]) -> list[Value]:
    """The results of a block, its equations appended to the innermost one."""
    env = Environment(here, block.params, operands)
    program = here.program
    place = program.span
    for equation in block.equations:
        program.span = equation.span
        results = append(program.current, equation, env.all(equation.inputs))
        env.values.update(zip(equation.outputs, results, strict=True))
    program.span = place
    return env.all(block.results)


def closed(
    facts: Assumptions,
    types: Sequence[ArrayType],
    build: Callable[[Builder, list[Value]], Sequence[Value]],
) -> Block:
    """A block with parameters of these types, and the results that `build` makes of them."""
    here = Program(facts).current
    params = [here.parameter(type_) for type_ in types]
    return here.finish(params, build(here, params))[0]


def zeros(here: Builder, type: ArrayType) -> Value:  # noqa: A002
    """Zeros of any type: false for bool, and for keys those of the seed 0."""
    dtype = type.dtype
    if dtype is KEY:
        return here.bind(here.basis.seed_key(), (here.full(0, type.shape, I32),))[0]
    if dtype is BOOL:
        return here.full(False, type.shape, dtype)
    return here.full(0j if dtype.is_complex else 0.0 if dtype.is_float else 0, type.shape, dtype)
