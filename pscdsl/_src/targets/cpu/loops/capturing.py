"""Bodies of loops that capture more than they did: what is computed of captured arrays before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pscdsl._src.ir.primitive import Primitive, Types
from pscdsl._src.ir.program import Atom, Block, Equation, Var


@dataclass(frozen=True)
class Prepared:
    """The body of a loop that captures more, and what makes it of what was captured."""

    body: Block
    captured: Sequence[Var]
    """The parameters for what was captured; they are the first, and keep their places."""
    before: Sequence[Equation]
    """Their inputs are among the captured parameters, or are made before."""
    added: Sequence[Var]
    """What is captured as well, after them."""

    def around(self, loop: Primitive, inputs: Types, outputs: Types, first: int) -> Block:
        """The program that prepares the arrays and runs the loop with this body.

        It takes what the loop took; `first` is the place of what the body captured.
        """
        params = [Var(each) for each in inputs]
        held = params[first : first + len(self.captured)]
        names: dict[Atom, Atom] = dict(zip(self.captured, held, strict=True))
        equations = [
            Equation(
                each.primitive,
                tuple([names.get(atom, atom) for atom in each.inputs]),
                each.outputs,
                each.span,
            )
            for each in self.before
        ]
        last = first + len(self.captured)
        results = tuple([Var(each) for each in outputs])
        operands = (*params[:last], *self.added, *params[last:])
        return Block(tuple(params), (*equations, Equation(loop, operands, results)), results)


def prepared(
    body: Block, captured: int, equations: Iterable[Equation], before: Iterable[Sequence[Equation]]
) -> Prepared | None:
    """A body with other equations, which take the last output of each row of those before.

    None if there are none before.
    """
    rows = tuple(before)
    if not rows:
        return None
    added = [row[-1].outputs[0] for row in rows]
    inside = [Var(each.type, each.hint) for each in added]
    names: dict[Atom, Atom] = dict(zip(added, inside, strict=True))
    params = (*body.params[:captured], *inside, *body.params[captured:])
    changed = [
        Equation(
            each.primitive,
            tuple([names.get(atom, atom) for atom in each.inputs]),
            each.outputs,
            each.span,
        )
        for each in equations
    ]
    new = Block(params, tuple(changed), body.results)
    return Prepared(new, body.params[:captured], [each for row in rows for each in row], added)
