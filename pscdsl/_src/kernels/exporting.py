"""Kernels as artefacts: lowered for sizes, with all that a call has to know of them."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pscdsl
from pscdsl._src.analysis.fingerprint import NoFingerprint, fingerprint
from pscdsl._src.artefacts.format import (
    TARGETS,
    Artefact,
    ArtefactError,
    OnMesh,
    SizedProgram,
    StoredProgram,
    Target,
    signing_key,
    written,
)
from pscdsl._src.artefacts.json_forms import NotWritable, encoded
from pscdsl._src.calls.errors import ArgumentError
from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.text.display import Sources
from pscdsl._src.frontend.transformations.derived import DerivedDefinition
from pscdsl._src.ir.program import Block, Function
from pscdsl._src.kernels.emission import emitted
from pscdsl._src.kernels.mesh_programs import device_program, require_axes
from pscdsl._src.language.donation import donated
from pscdsl._src.language.elements import stand_in
from pscdsl._src.language.writes import named
from pscdsl._src.primitives.control import Call
from pscdsl._src.support.effects import Kind
from pscdsl._src.support.paths import Folder, resolved
from pscdsl._src.xla import compilation, lapack
from pscdsl._src.xla.runtime.executable import aval_of
from pscdsl.typing.array_types import substitute_tree
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import Span
from pscdsl.typing.python_containers import is_dict, is_tuple
from pscdsl.typing.signatures import Choice
from pscdsl.typing.unify import match

if TYPE_CHECKING:
    from pathlib import Path

    from pscdsl._src.kernels.kernel import Kernel
    from pscdsl._src.language.donation import Donate
    from pscdsl._src.xla.specialisation import Specialisation


# The source of a kernel, in few bytes.
#
# The text of every function that the kernel was made of counts: its own, those that were elaborated
# inline, and kernels that it calls, also those of libraries. Their places and the rest of their
# files do not count. Captured values of the module only count in the program's fingerprint.


def source_hash(definition: Definition, programs: Iterable[Function]) -> str:
    """Return the SHA-256, as text, of the source of a kernel and of programs made of it."""
    places: dict[str, set[int]] = {}
    for span in _spans(definition, programs):
        for frame in span.frames():
            places.setdefault(frame.path, set()).add(frame.line)
    sources = Sources()
    texts = {text for path, lines in places.items() for text in _statements(sources, path, lines)}
    made = sha256(definition.name.encode())
    for text in sorted(texts):
        made.update(f"\n{len(text)}\n{text}".encode(errors="replace"))
    return made.hexdigest()


def _spans(definition: Definition, programs: Iterable[Function]) -> Iterator[Span]:
    yield definition.span
    while isinstance(definition, DerivedDefinition):
        definition = definition.base
        yield definition.span
    yield from definition.elaborations.entered
    seen: set[Function] = set()
    due = list(programs)
    while due:
        program = due.pop()
        if program in seen:
            continue
        seen.add(program)
        yield program.span
        blocks = [program.body]
        while blocks:
            yield from _of_block(blocks.pop(), blocks, due)


def _of_block(block: Block, blocks: list[Block], due: list[Function]) -> Iterator[Span]:
    for equation in block.equations:
        yield equation.span
        blocks.extend(equation.primitive.blocks())
        if isinstance(equation.primitive, Call):
            due.append(equation.primitive.function)


def _statements(sources: Sources, path: str, lines: set[int]) -> Iterator[str]:
    """Yield the statements of a module that contain some lines."""
    rows = sources.lines(path)
    try:
        tree = ast.parse("\n".join(rows))
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in tree.body:
        first = min(
            [node.lineno, *[decorator.lineno for decorator in getattr(node, "decorator_list", ())]]
        )
        last = node.end_lineno or first
        if any(first <= line <= last for line in lines):
            yield "\n".join(rows[first - 1 : last]).rstrip()


def export(
    kernel: Kernel[..., Any],
    path: Path | str | None,
    variants: Sequence[object],
    target: Target,
    donate: Donate | None,
    key: bytes | None,
    sizes: Mapping[str, Any],
    mesh: Mapping[str, int] | None = None,
) -> bytes:
    """Return the bytes of the artefact, which are also written to the file if one is named."""
    signed_with = signing_key(key)
    wanted = [
        kernel.without_effects(_specialisation(kernel, specialisation, sizes))
        for specialisation in variants or ({},)
    ]
    if donate is not None:
        wanted = [
            replace(specialisation, donate=kernel.donated(specialisation.choice, donate))
            for specialisation in wanted
        ]
    chosen = kernel.definition.donate if donate is None else named(donate)
    names = donated(kernel.signature, chosen)
    try:
        data = written(artefact(kernel, wanted, target, names, mesh), signed_with)
    except NotWritable as problem:
        raise ArgumentError(f"{kernel.name} cannot be exported with {problem}") from None
    if path is not None:
        folder, name = os.path.split(os.path.abspath(path))
        with Folder(resolved(folder)) as here:
            here.replace(name, data, mode=0o666)  # for others to load, as any file
    return data


def _specialisation(
    kernel: Kernel[..., Any], variant: object, sizes: Mapping[str, Any]
) -> Specialisation:
    """Return the specialisation of a variant: sizes and choices by name, or arguments."""
    if is_dict(variant):
        return kernel.lower(**{**sizes, **variant}).specialisation
    if not is_tuple(variant) or sizes:
        raise TypeError(f"not sizes by name, nor a tuple of arguments alone: {variant!r}")
    return kernel.specialisation_for(list(map(stand_in, variant)), {})


def artefact(
    kernel: Kernel[..., Any],
    wanted: Sequence[Specialisation],
    target: Target,
    donate: Sequence[str],
    mesh: Mapping[str, int] | None = None,
) -> Artefact:
    """Return the artefact of a kernel at all of these sizes, on a mesh if one is given."""
    if mesh is not None:
        require_axes(kernel.name, kernel.signature, mesh)
    if target not in TARGETS:
        raise ValueError(f"the target is {' or '.join(map(repr, TARGETS))}, not {target!r}")
    by_choice: dict[Choice, list[Specialisation]] = {}
    for specialisation in wanted:
        known = by_choice.setdefault(_matched(kernel, specialisation), [])
        if not any(dict(earlier.sizes) == dict(specialisation.sizes) for earlier in known):
            known.append(specialisation)

    def module(wanted: Specialisation) -> SizedProgram:
        if mesh is None:
            return _module(wanted, target)
        return _module_on(kernel, wanted, target, donate, mesh)

    def program(choice: Choice, wanted: Sequence[Specialisation]) -> StoredProgram:
        return _program(choice, wanted[0].program, tuple(map(module, wanted)))

    return Artefact(
        pscdsl.__version__,
        compilation.VERSION,
        target,
        replace(kernel.signature, name=kernel.name),
        dict(_defaults(kernel)),
        tuple(donate),
        source_hash(kernel.definition, [specialisation.program for specialisation in wanted]),
        tuple([program(choice, group) for choice, group in by_choice.items()]),
    )


def _matched(kernel: Kernel[..., Any], wanted: Specialisation) -> Choice:
    """Return the choice that a call with this specialisation's types makes."""
    sizes = dict(wanted.sizes)
    given = {name: substitute_tree(tree, sizes) for name, tree in wanted.program.parameters}
    return match(kernel.signature, given, Assumptions()).choice


def _program(choice: Choice, program: Function, modules: tuple[SizedProgram, ...]) -> StoredProgram:
    assert program.result is not None
    return StoredProgram(
        choice,
        program.dims,
        program.facts,
        program.body.in_types,
        program.result,
        program_hash(program),
        modules,
    )


def program_hash(program: Function) -> str:
    """Return the fingerprint of a program as text; empty if it has none."""
    try:
        return fingerprint(program).hex()
    except NoFingerprint:
        return ""


def _module(wanted: Specialisation, target: Target) -> SizedProgram:
    program = wanted.program
    module = emitted(
        program, wanted.sizes, wanted.donate, device=wanted.device, portable=target == "any"
    )
    sizes = {name: wanted.sizes[name] for name in program.dims}
    return _verified(program, sizes, module, sizes, wanted.donate)


def _module_on(
    kernel: Kernel[..., Any],
    wanted: Specialisation,
    target: Target,
    donate: Sequence[str],
    mesh: Mapping[str, int],
) -> SizedProgram:
    """Return the module of each device of a mesh."""
    made = device_program(
        kernel.reading, wanted.choice, wanted.sizes, mesh, donate=donate, effects=frozenset()
    )
    placed, sizes = made.placed, {name: wanted.sizes[name] for name in wanted.program.dims}
    module = made.module(wanted.device, portable=target == "any")
    on = OnMesh(tuple(mesh.items()), placed.arguments, placed.results)
    return _verified(placed.function, made.sizes, module, sizes, made.donate, on)


def _verified(
    program: Function,
    own: Mapping[str, int],
    module: Any,
    sizes: Mapping[str, int],
    donate: tuple[int, ...],
    mesh: OnMesh | None = None,
) -> SizedProgram:
    """Return a module as it is stored, which is read again; `own` are the sizes of its arrays."""
    calls = tuple(compilation.targets(module))
    made = SizedProgram(sizes, compilation.portable(module), calls, donate, mesh)
    inputs, outputs = (
        [aval_of(each, own) for each in types]
        for types in (program.body.in_types, program.body.out_types)
    )
    foreign = [call for call in calls if lapack.routine_of(call) is None]
    try:
        compilation.verified(made, inputs, outputs, foreign)
    except compilation.UnusableModule as problem:
        raise ArtefactError(f"{program.name} cannot be exported: {problem}") from None
    return made


def _defaults(kernel: Kernel[..., Any]) -> Iterable[tuple[str, object]]:
    """Yield the defaults that can be written down."""
    defaults = kernel.definition.defaults
    for parameter in kernel.signature.parameters:
        if parameter.has_default and parameter.name in defaults:
            try:
                encoded(defaults[parameter.name])
            except NotWritable:
                continue
            yield parameter.name, defaults[parameter.name]


def unchanged(artefact: Artefact, kernel: Kernel[..., Any]) -> bool:
    """Return whether a kernel still has the source and the programs of an artefact."""
    pure = frozenset[Kind]()
    programs = [kernel.optimised(each.choice, effects=pure) for each in artefact.programs]
    same = source_hash(kernel.definition, programs) == artefact.source_hash
    return same and all(
        program_hash(made) == program.fingerprint
        for made, program in zip(programs, artefact.programs, strict=True)
    )
