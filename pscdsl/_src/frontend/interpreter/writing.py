"""Kernels that write to their arguments: `@psc.kernel(writes=("A", "B"))`.

In the body a written parameter is a whole array of its own, which takes stores.  Nobody else sees
it while the body runs, for calls with arguments that overlap are refused; but the caller holds it,
so that it is never taken for an array that only one name refers to.  What it holds at the end is a
further result.

Another kernel that calls such a kernel stores these results into the arrays that it passed.  Code
that knows nothing of this meets `apply`, which refuses: no store is ever left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pscdsl._src.frontend.interpreter.frames import Session, session_of
from pscdsl._src.frontend.interpreter.places import (
    WHOLE,
    Cell,
    Frozen,
    Located,
    Ref,
    freeze,
    load,
    own,
)
from pscdsl._src.frontend.interpreter.state import may_hold
from pscdsl._src.frontend.values import Poisoned, describe, is_poisoned
from pscdsl._src.ir.builder import Builder, Program, Value
from pscdsl._src.ir.program import Function
from pscdsl._src.language.writes import split
from pscdsl.typing.array_types import ArrayType, TupleType, Type, leaves
from pscdsl.typing.codes.language import NoSuchAttribute, Unsupported
from pscdsl.typing.codes.limits import InternalError
from pscdsl.typing.codes.performance import WritesNothing
from pscdsl.typing.codes.purity import Mutation
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic, Failure
from pscdsl.typing.signatures import Signature

if TYPE_CHECKING:
    from pscdsl._src.frontend.definitions import Definition


# In the body of the kernel.


def written_cells(
    session: Session, names: Sequence[str], arguments: dict[str, Any]
) -> Mapping[str, Cell]:
    """Make the arguments with these names arrays that take stores; the cells that hold them."""
    cells: dict[str, Cell] = {}
    for name in names:
        cells[name] = Cell(session, arguments[name])
        arguments[name] = Ref(cells[name])
    session.caller_holds = tuple(cells.values())
    return cells


def final_contents(
    program: Program, cells: Mapping[str, Cell], declared: Mapping[str, Type]
) -> list[Value]:
    """What written arrays hold where the kernel ends: values of the types of its parameters."""
    found: list[Value] = []
    for name, cell in cells.items():
        content, wanted = cell.content, declared[name]
        assert isinstance(wanted, ArrayType)
        if not isinstance(content, Value) or not _same(program, content.type, wanted):
            raise Failure(InternalError(what=f"`{name}` ends as {content.type}, not {wanted}"))
        found.append(content)
    return found


def _same(program: Program, one: ArrayType, other: ArrayType) -> bool:
    if one.dtype is not other.dtype or one.rank != other.rank:
        return False
    return all(map(program.facts.equal, one.shape, other.shape))


def with_written(result: Type | None, contents: Sequence[Type]) -> Type:
    """The type of all results: of what is returned, if anything is, and of written arrays."""
    if result is not None:
        return TupleType((result, *contents))
    return contents[0] if len(contents) == 1 else TupleType(tuple(contents))


def shows_arguments(session: Session, cells: Mapping[str, Cell]) -> bool:
    """Whether somebody may hold an argument after a call: the result, or a record in it."""
    found = session.result_cells
    if found is None or any(cell.frozen is not None for cell in cells.values()):
        return True
    return any(cell.frozen is not None or cell in session.caller_holds for cell in found)


def never_written(
    signature: Signature, program: Function, cells: Mapping[str, Cell]
) -> Iterator[Diagnostic]:
    """Yield a finding for each parameter that is declared to be written, and stays as it was."""
    if signature.combinations() > 1:
        return  # another choice may write them
    params = iter(program.body.params)
    first = {name: [next(params) for _ in leaves(tree)] for name, tree in program.parameters}
    contents = program.body.results[-len(signature.writes) :]
    for name, content in zip(signature.writes, contents, strict=True):
        if content is first[name][0]:
            place = next(each.span for each in signature.parameters if each.name == name)
            span = program.span if place is NOWHERE else place
            others = tuple(each for each in signature.writes if each != name)
            stored = cells[name].stamp > 0
            yield WritesNothing(parameter=name, stored=stored, others=others, span=span)


# In the body of another kernel.


@dataclass(frozen=True, eq=False)
class WritingKernel:
    """What a kernel that writes to its arguments is in another kernel."""

    definition: Definition
    """The kernel as a pure function, its functional form."""

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return self.definition.name

    def description(self) -> str:
        """How messages speak of it."""
        return f"the kernel `{self.name}`, which writes to its arguments"

    def of_class(self, cls: Any) -> WritingKernel:
        """The method as a class has it that may derive from its own."""
        return WritingKernel(self.definition.of_class(cls))

    def lookup_attribute(self, name: str) -> Any:
        """`kernel.functional`, which returns new arrays and writes to none."""
        if name == "functional":
            return self.definition
        raise Failure(NoSuchAttribute(owner=self.description(), attribute=name))

    def apply(self, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """A Failure: who calls it in this way does not store into arrays."""
        raise self.refusal()

    def refusal(self) -> Failure:
        """The refusal of a use that would leave out the stores."""
        rewrite = f"`{self.name}.functional` returns the new arrays after its result, and is pure"
        return Failure(
            Unsupported(what=f"{self.description()}, where it is not called", rewrite=rewrite)
        )

    def call(self, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call it with arguments that may be references, and store what it writes into these."""
        definition = self.definition
        names = definition.signature.writes
        bound = definition.closure.bind(args, kwargs)
        targets: dict[str, Located] = {}
        for name in names:
            given = bound[name]
            if is_poisoned(given):
                raise Poisoned
            if not isinstance(given, Located):
                raise Failure(
                    Mutation(
                        what=f"`{self.name}` writes to `{name}`, and {describe(given)} for it",
                        rewrite="pass an array that the function made, or one that it may write",
                    )
                )
            targets[name] = given
        self._refuse_overlap(session_of(here), bound, targets)
        found, shows = definition.called(here, load(args), load(kwargs))
        result, contents = split(found, len(names))
        for target, content in zip(targets.values(), contents, strict=True):
            target.store(here, WHOLE, content)
        frozen = None
        if shows:
            why = f"is given to `{self.name}`, which returns it or a part of it"
            frozen = Frozen(why, here.program.span)
            for each in bound.values():
                freeze(session_of(here), each, frozen)
        return own(session_of(here), result, frozen)

    def _refuse_overlap(
        self, session: Session, bound: Mapping[str, Any], targets: Mapping[str, Located]
    ) -> None:
        """A Failure if an array that is written may be, or show, that of another argument."""
        for name, target in targets.items():
            cells = set(target.cells())
            for other, value in bound.items():
                if other != name and may_hold(session, value, cells):
                    raise Failure(
                        Mutation(
                            what=f"`{self.name}` writes to `{name}`, and",
                            why=f"it is given as `{other}`, too",
                            rewrite=f"pass a copy, `.copy()`, for one of `{name}` and `{other}`",
                        )
                    )


def as_called(definition: Definition) -> Definition | WritingKernel:
    """What a kernel is in another one."""
    return WritingKernel(definition) if definition.writes else definition


def definition_in(value: Any) -> Any:
    """The definition of a kernel that writes; of all else, the thing itself."""
    return value.definition if isinstance(value, WritingKernel) else value
