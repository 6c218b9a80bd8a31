"""The artefact in a file, read as data: whatever is wrong with it is an ArtefactError."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pscdsl._src.artefacts.contents import TARGETS, Artefact, ArtefactError, Module, Program, Target
from pscdsl._src.artefacts.keys import Trust
from pscdsl._src.artefacts.layout import LARGEST, unpacked
from pscdsl._src.artefacts.types import array_of, choice_of, number, signature_of, type_of
from pscdsl._src.artefacts.values import decoded
from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.assumptions import Assumptions, parse_fact
from pscdsl.typing.signatures import Instantiation, Signature
from pscdsl.typing.trees import leaves


def read(data: bytes, trust: Trust = "user") -> Artefact:
    """The artefact that `written` wrote, if its signature is to be trusted."""
    if len(data) > LARGEST:
        raise ArtefactError(f"it is larger than {LARGEST} bytes")
    head, codes = unpacked(data, trust)
    try:
        return _artefact(head, codes)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
        if isinstance(problem, ArtefactError):
            raise
        told = f"{type(problem).__name__}: {problem}"
        raise ArtefactError(f"its head does not say what it should ({told})") from None
    except RecursionError:
        raise ArtefactError("its head is nested too deeply") from None


def _artefact(head: Any, codes: bytes) -> Artefact:
    signature = signature_of(head["types"])
    names = [each.name for each in signature.parameters]
    if len(set(names)) < len(names) or not all(name.isidentifier() for name in names):
        raise ValueError("names of parameters")
    target: Target = TARGETS[TARGETS.index(head["target"])]
    donated = tuple([names[names.index(each)] for each in head["donate"]])
    programs: list[Program] = []
    for form in head["programs"]:
        program, codes = _program(form, codes)
        _require_consistent(program, signature, donated)
        programs.append(program)
    if codes or not programs:
        raise ValueError("the modules are not as long as the head says")
    return Artefact(
        str(head["version"]),
        str(head["stablehlo"]),
        target,
        signature,
        {name: decoded(each) for name, each in head["defaults"].items() if name in names},
        donated,
        str(head["source"]),
        tuple(programs),
    )


def _program(form: Any, codes: bytes) -> tuple[Program, bytes]:
    """A program, its modules taken from the front of `codes`; and what is left of these."""
    dims = tuple([str(each) for each in form["dims"]])
    facts = tuple([fact for text in form["preconditions"] for fact in parse_fact(text)])
    inputs = tuple([array_of(each) for each in form["inputs"]])
    modules: list[Module] = []
    for each in form["modules"]:
        sizes = {name: number(each["sizes"][name]) for name in dims}
        calls = tuple([str(call) for call in each["calls"]])
        donate = tuple([number(place) for place in each["donate"]])
        length = number(each["length"])
        if length > len(codes):
            raise ValueError("a module is longer than what is there")
        modules.append(Module(sizes, codes[:length], calls, donate))
        codes = codes[length:]
    made = Program(
        choice_of(form["choice"]),
        dims,
        Assumptions(facts),
        inputs,
        type_of(form["result"]),
        str(form["fingerprint"]),
        tuple(modules),
    )
    return made, codes


def _require_consistent(program: Program, signature: Signature, donated: Sequence[str]) -> None:
    """Refuse a program that takes or gives away other arrays than its signature says.

    So is one whose arrays have unknown sizes.
    """
    types = Instantiation(program.choice)
    owners: list[str] = []
    inputs: list[ArrayType] = []
    for each in signature.parameters:
        arrays = list(leaves(types.type_of(each.spec, each.name)))
        inputs += arrays
        owners += [each.name] * len(arrays)
    if tuple(inputs) != program.inputs:
        raise ValueError("the arrays of a program are not those of the signature")
    given = [place for each in program.modules for place in each.donate]
    if any(place >= len(owners) or owners[place] not in donated for place in given):
        raise ValueError("a program gives away the memory of other parameters")
    none: frozenset[str] = frozenset()
    known = none.union(*[each.names() for each in program.inputs])
    used = none.union(*[each.names() for each in leaves(program.result)])
    asked = none.union(*[each.names() for each in program.facts.facts])
    if known != frozenset(program.dims) or not used | asked <= known:
        raise ValueError("a size is not known")
