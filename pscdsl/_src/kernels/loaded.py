"""Exported kernels, called without their source: nothing is elaborated, traced or lowered."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter as Declared
from inspect import Signature as PythonSignature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pscdsl._src.artefacts.format import (
    LARGEST,
    Artefact,
    ArtefactError,
    SizedProgram,
    StoredProgram,
    Trust,
    read,
)
from pscdsl._src.calls import boundary
from pscdsl._src.calls.called import Called, admit
from pscdsl._src.calls.errors import ArgumentError
from pscdsl._src.kernels.executables import compiler_of
from pscdsl._src.language.instances import RecordLayout, layout_of, stand_in_class
from pscdsl._src.support import paths as files
from pscdsl._src.support.processes import require_modules
from pscdsl._src.support.tracebacks import public
from pscdsl._src.xla import compilation, lapack
from pscdsl._src.xla.binding import register_class
from pscdsl._src.xla.dispatch import BoundExecutable
from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.executable import CompilationFailed, aval_of
from pscdsl._src.xla.runtime.settings import LOOP_BYTES
from pscdsl.typing.array_types import (
    ArrayType,
    RecordName,
    RecordType,
    StaticType,
    Type,
    leaves,
    map_records,
    nodes,
    paths,
)
from pscdsl.typing.signatures import (
    Choice,
    Instantiation,
    RecordSpec,
    Signature,
    Spec,
    StaticSpec,
    walk_paths,
)

if TYPE_CHECKING:
    from pscdsl._src.xla.mesh import Mesh
    from pscdsl._src.xla.mesh_executable import MeshExecutable
    from pscdsl._src.xla.runtime.boot import Aval
    from pscdsl._src.xla.runtime.executable import Executable


@public
def load(
    source: os.PathLike[str] | str | bytes,
    /,
    *,
    types: Sequence[type[Any]] = (),
    calls: Sequence[str] = (),
    trust: Trust = "user",
) -> Loaded:
    """Load an exported kernel.

    Args:
        source: The path of a file, or its bytes.
        types: Classes of records among the arguments and results, matched by name and fields. Other
            records become NamedTuples.
        calls: Names of custom calls, besides LAPACK's, that the artefact may make.
        trust: Which artefacts are accepted, since they become machine code: `"user"`, those signed
            with the key of the user; a key of bytes, those signed with it; `"anyone"`, all.

    Raises:
        ArtefactError: The artefact is damaged, is not accepted, or does not fit this version.

    Examples:
        >>> @psc.kernel
        ... def norm(x: f32["n"]) -> f32:
        ...     return np.sqrt(np.sum(x * x))
        >>> data = norm.export("norm.psc", n=2)
        >>> psc.load("norm.psc")(np.array([3, 4], np.float32))
        pscdsl.Array(5., dtype=float32)
    """
    if isinstance(source, bytes):
        return Loaded(read(source, trust), types, calls)
    path = Path(source)
    try:
        data = files.read(files.resolved(os.fspath(path)), LARGEST)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise ArtefactError(f"{path} cannot be read: {reason}") from problem
    try:
        return Loaded(read(data, trust), types, calls)
    except ArtefactError as problem:
        raise ArtefactError(f"{path} is no exported kernel that can be used: {problem}") from None


@dataclass(frozen=True, eq=False)
class Variant:
    """A loaded kernel at certain sizes."""

    program: StoredProgram
    module: SizedProgram

    def types(self) -> tuple[tuple[ArrayType, ...], tuple[ArrayType, ...]]:
        """Return the types of its arguments and results."""
        sizes = dict(self.module.sizes)
        inputs = tuple([type_.substitute(sizes) for type_ in self.program.inputs])
        return inputs, tuple([type_.substitute(sizes) for type_ in leaves(self.program.result)])

    def avals(self) -> tuple[list[Aval], list[Aval]]:
        """Return the types of the inputs and outputs of its `main` in jaxlib's form."""
        inputs, outputs = map(list, self.types())
        mesh = self.module.mesh
        if mesh is not None:
            inputs = mesh.pieces(inputs, mesh.arguments)
            outputs = mesh.pieces(outputs, mesh.results)
        return [aval_of(type_, {}) for type_ in inputs], [aval_of(type_, {}) for type_ in outputs]

    def __str__(self) -> str:
        text, mesh = self.program.choice.at(self.module.sizes), self.module.mesh
        return text if mesh is None else f"{text} on {mesh}".lstrip()


class Loaded(Called[..., Any]):
    """An exported kernel, which is called like the kernel, at the exported sizes.

    Examples:
        >>> @psc.kernel
        ... def norm(x: f32["n"]) -> f32:
        ...     return np.sqrt(np.sum(x * x))
        >>> psc.load(norm.export(n=2))
        <loaded kernel norm(x: f32[n]) -> f32>
    """

    def __init__(
        self, artefact: Artefact, types: Sequence[type[Any]] = (), calls: Sequence[str] = ()
    ) -> None:
        self._artefact = artefact
        self._types, self._calls = tuple(types), tuple(calls)
        self._layouts = dict(_layouts(artefact, types))
        self._results = [
            map_records(program.result, lambda name: self._layouts[name].name)
            for program in artefact.programs
        ]
        self._places = {program.choice: at for at, program in enumerate(artefact.programs)}
        self._python_signature = _python_signature(artefact)

    @property
    def name(self) -> str:
        """The name of the kernel.

        Examples:
            >>> @psc.kernel
            ... def norm(x: f32["n"]) -> f32:
            ...     return np.sqrt(np.sum(x * x))
            >>> psc.load(norm.export(n=2)).name
            'norm'
        """
        return self._artefact.signature.name

    @property
    def signature(self) -> Signature:
        """The declared types; printed, they are text.

        Examples:
            >>> @psc.kernel
            ... def norm(x: f32["n"]) -> f32:
            ...     return np.sqrt(np.sum(x * x))
            >>> print(psc.load(norm.export(n=2)).signature)
            norm(x: f32[n]) -> f32
        """
        return self._artefact.signature

    @property
    def python_signature(self) -> PythonSignature:
        """The parameters as Python has them."""
        return self._python_signature

    @property
    def source_hash(self) -> str:
        """The SHA-256 of the source text of the kernel; see `made_from`.

        Examples:
            >>> @psc.kernel
            ... def norm(x: f32["n"]) -> f32:
            ...     return np.sqrt(np.sum(x * x))
            >>> len(psc.load(norm.export(n=2)).source_hash)
            64
        """
        return self._artefact.source_hash

    @property
    def target(self) -> str:
        """The devices that it runs on: "any" or "cpu".

        Examples:
            >>> @psc.kernel
            ... def norm(x: f32["n"]) -> f32:
            ...     return np.sqrt(np.sum(x * x))
            >>> psc.load(norm.export(n=2, target="cpu")).target
            'cpu'
        """
        return self._artefact.target

    @property
    def version(self) -> str:
        """The version of pscdsl that exported it.

        Examples:
            >>> @psc.kernel
            ... def norm(x: f32["n"]) -> f32:
            ...     return np.sqrt(np.sum(x * x))
            >>> psc.load(norm.export(n=2)).version == psc.__version__
            True
        """
        return self._artefact.version

    @property
    def sizes(self) -> tuple[dict[str, int], ...]:
        """The exported sizes, in their order.

        Examples:
            >>> @psc.kernel
            ... def norm(x: f32["n"]) -> f32:
            ...     return np.sqrt(np.sum(x * x))
            >>> psc.load(norm.export(None, {"n": 2}, {"n": 1000})).sizes
            ({'n': 2}, {'n': 1000})
        """
        return tuple([dict(variant.module.sizes) for variant in self.variants])

    @functools.cached_property
    def variants(self) -> tuple[Variant, ...]:
        """The programs that it has, each at certain sizes."""
        programs = self._artefact.programs
        return tuple(
            [Variant(program, module) for program in programs for module in program.modules]
        )

    @property
    def preconditions(self) -> tuple[str, ...]:
        """The facts that sizes must satisfy, as text.

        Examples:
            >>> @psc.kernel
            ... def middle(x: f32["n"]) -> f32:
            ...     return x[2]
            >>> psc.load(middle.export(n=4)).preconditions
            Traceback (most recent call last):
            pscdsl.CheckError: 1 finding

            error[PSC314]: index 2 is not within axis 0 of size n
              ┌─ <session[0]>:3:12
              │
             3│     return x[2]
              │            ^^^^ for instance n=1
              = help: add `assert x.shape[0] >= 3`
        """
        facts = (fact for program in self._artefact.programs for fact in program.facts.facts)
        return tuple(dict.fromkeys(map(str, facts)))

    @property
    def needs(self) -> tuple[str, ...]:
        """The custom calls that it makes: LAPACK's, which jaxlib has for CPUs, and others.

        Examples:
            >>> @psc.kernel
            ... def root(a: f32["n n"]) -> f32["n n"]:
            ...     return np.linalg.cholesky(a)
            >>> psc.load(root.export(n=2, target="cpu")).needs
            ('lapack_spotrf_ffi',)
        """
        return tuple(
            dict.fromkeys(call for variant in self.variants for call in variant.module.calls)
        )

    @property
    def records(self) -> dict[str, type[Any]]:
        """The classes of the records that it returns and takes, by name."""
        return {name.name: layout.constructor for name, layout in self._layouts.items()}

    @property
    def layouts(self) -> tuple[RecordLayout, ...]:
        """The records that it returns and takes, each with its class."""
        return tuple(self._layouts.values())

    def __repr__(self) -> str:
        return f"<loaded kernel {self.signature}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the artefact and its checked types, for pickling."""
        return Loaded, (self._artefact, self._types, self._calls)

    def text(self, **sizes: int) -> str:
        """Return the StableHLO at the first exported sizes that agree with the given ones.

        Examples:
            >>> @psc.kernel
            ... def doubled(x: f32["n"]) -> f32["n"]:
            ...     return x + x
            >>> print(psc.load(doubled.export(n=4)).text())
            module {
              func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
                %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
                return %0 : tensor<4xf32>
              }
            }
        """
        try:
            return compilation.text(self.variant(**sizes).module.code)
        except compilation.UnusableModule as problem:
            raise ArtefactError(f"a module of the artefact cannot be used: {problem}") from None

    def variant(self, **sizes: int) -> Variant:
        """Return the first program whose sizes agree with the given ones."""
        for variant in self.variants:
            if all(variant.module.sizes.get(name) == size for name, size in sizes.items()):
                return variant
        asked = ", ".join(f"{name}={size}" for name, size in sizes.items())
        raise ArgumentError(f"{self.name} was not exported for {asked}; {self._sizes_text()}")

    def to_jax(self) -> Callable[..., Any]:
        """Return a function of jax arrays, for `jax.jit`. jax must be installed.

        It has no derivatives: export those that you need. Records become pytrees: NamedTuples, or
        the classes named when it was loaded. Pass random keys as `jax.random.key_data(key)`.

        Examples:
            >>> import jax
            >>> @psc.kernel
            ... def norm(x: f32["n"]) -> f32:
            ...     return np.sqrt(np.sum(x * x))
            >>> jax.jit(psc.load(norm.export(n=2)).to_jax())(jax.numpy.array([3.0, 4.0]))
            Array(5., dtype=float32)
        """
        from pscdsl._src.interop.to_jax import loaded_to_jax  # most programs have no jax

        return loaded_to_jax(self)

    def made_from(self, kernel: Any) -> bool:
        """Return whether a kernel still has the source and programs that this one is made of.

        Examples:
            >>> @psc.kernel
            ... def norm(x: f32["n"]) -> f32:
            ...     return np.sqrt(np.sum(x * x))
            >>> psc.load(norm.export(n=2)).made_from(norm)
            True
        """
        from pscdsl._src.kernels.exporting import unchanged  # which reads kernels

        return unchanged(self._artefact, kernel)

    # Calls.

    def record_class(self, cls: type[Any], spec: Spec | None) -> RecordLayout | None:
        """Return the layout of a record class; it must have the declared name and fields."""
        layout = layout_of(cls)
        if layout is None:
            return None
        for name, known in self._layouts.items():
            same = layout.names == known.names
            same = same or (layout.kind == "precord" and {*layout.names} == {*known.names})
            if same and cls.__name__ == name.name:
                return RecordLayout(known.name, layout.kind, cls, known.names, known.statics)
        if isinstance(spec, RecordSpec) and cls.__name__ == spec.record.name:
            theirs, ours = ", ".join(layout.names), ", ".join(n for n, _ in spec.fields)
            raise boundary.NotAnArgument(f"a {cls.__name__} of {theirs}, not of {ours}")
        return layout

    def _donated_names(self) -> Sequence[str]:
        return self._artefact.donate

    @functools.cached_property
    def dispatcher(self) -> Any:
        """Finds the compiled program for a call's arguments."""
        if all(variant.module.mesh is None for variant in self.variants):
            return self._made_dispatcher()
        from pscdsl._src.kernels.mesh_calls import MeshCalls  # of few kernels

        require_modules()
        convention = self._calling_convention()
        alone = self.dispatcher_for(self._specialise, convention.donated, convention.constants)
        return MeshCalls(self, alone, self._on_mesh)

    def _on_mesh(
        self, choice: Choice, sizes: Mapping[str, int], mesh: Mesh
    ) -> tuple[MeshExecutable, Any]:
        """Return the program on a mesh for arguments of these sizes, and the tree of its result."""
        from pscdsl._src.kernels.mesh_calls import stored_placements
        from pscdsl._src.xla.mesh_executable import mesh_executable

        variant, tree = self._variant(choice, sizes, mesh.axes)
        boundary.register_result(tree, register_class)
        on = variant.module.mesh
        assert on is not None, "it is for a mesh"
        if any(call.startswith(lapack.PREFIX) for call in variant.module.calls):
            boot.lapack()
        arguments, results = variant.types()
        parameters = Instantiation(choice)
        names = [
            path
            for each in self.signature.parameters
            for path, _ in paths(parameters.type_of(each.spec, each.name), each.name)
        ]
        try:
            made = mesh_executable(
                self.verify(variant),
                mesh,
                stored_placements(on.arguments, arguments),
                stored_placements(on.results, results),
                names=names,
                title=self.name,
            )
        except CompilationFailed as problem:
            raise ArtefactError(f"{self.name} does not compile here: {problem}") from None
        return made, tree

    def _specialise(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BoundExecutable:
        variant, tree = self.variant_for(self.arguments(args, kwargs)[1])
        boundary.register_result(tree, register_class)
        return BoundExecutable(
            self._executable(variant),
            lambda args, kwargs: self.arguments(args, kwargs)[0],
            lambda arrays: boundary.result(tree, iter(arrays)),
        )

    def variant_for(self, types: Mapping[str, Type]) -> tuple[Variant, Type]:
        """Return the variant for arguments of these types and its result; or an ArgumentError."""
        return self._variant(*self.matched(types), {})

    def _variant(
        self, choice: Choice, sizes: Mapping[str, int], mesh: Mapping[str, int]
    ) -> tuple[Variant, Type]:
        """Return the variant for arguments of these sizes on a mesh, which is empty for none."""
        place = self._places.get(choice)
        if place is None:
            raise ArgumentError(f"{self.name} was not exported for {choice}; {self._sizes_text()}")
        program = self._artefact.programs[place]
        admit(self.name, program.dims, program.facts, sizes)
        for each in self.variants:
            own, on = each.module.sizes, each.module.mesh
            axes = () if on is None else on.axes
            is_there = each.program is program and axes == tuple(mesh.items())
            if is_there and all(own[n] == sizes[n] for n in program.dims):
                return each, self._results[place]
        asked = ", ".join(f"{name}={sizes[name]}" for name in program.dims)
        if mesh:
            axes_text = ", ".join(f"{name}={size}" for name, size in mesh.items())
            asked = f"{asked} on Mesh({axes_text})".lstrip()
        raise ArgumentError(f"{self.name} was not exported for {asked}; {self._sizes_text()}")

    def _sizes_text(self) -> str:
        """Return the exported variants in words."""
        known = [str(variant) for variant in self.variants]
        shown = "; ".join(known[:8]) + (f"; and {len(known) - 8} more" if len(known) > 8 else "")
        return f"it was for: {shown}"

    def _executable(self, variant: Variant) -> Executable:
        module, device = variant.module, self.device

        def compiled(read: Any) -> Executable:
            executable: Executable = compiler_of(device).compiled(read, LOOP_BYTES, device)
            return executable

        try:
            return compilation.executable(module, *variant.avals(), compiled, self._calls, device)
        except compilation.UnusableModule as problem:
            raise ArtefactError(f"a module of the artefact cannot be used: {problem}") from None
        except CompilationFailed as problem:
            needs = f"; it needs {', '.join(module.calls)}" if module.calls else ""
            raise ArtefactError(f"{self.name} does not compile here: {problem}{needs}") from None

    def verify(self, variant: Variant) -> Any:
        """Return a module; an ArtefactError unless its operations and types are as they should."""
        try:
            return compilation.verified(variant.module, *variant.avals(), self._calls)
        except compilation.UnusableModule as problem:
            raise ArtefactError(f"a module of the artefact cannot be used: {problem}") from None


def _layouts(
    artefact: Artefact, types: Sequence[type[Any]]
) -> Iterator[tuple[RecordName, RecordLayout]]:
    """Yield the class of each record that occurs: one of `types`, or one that is made."""
    for name, (fields, statics) in dict(_records(artefact)).items():
        made: RecordLayout | None = None
        for cls in types:
            layout = layout_of(cls)
            if layout is not None and cls.__name__ == name.name and {*layout.names} == {*fields}:
                made = layout
                break
        try:
            made = made or stand_in_class(name, fields)
        except (TypeError, ValueError) as problem:
            raise ArtefactError(f"`{name.name}` is no record: {problem}") from None
        definition = RecordLayout(name, made.kind, made.constructor, fields, statics)
        called = RecordName(name.name, name.module, definition)
        yield name, RecordLayout(called, made.kind, made.constructor, fields, statics)


def _records(
    artefact: Artefact,
) -> Iterator[tuple[RecordName, tuple[tuple[str, ...], frozenset[str]]]]:
    """Yield the fields of each record that occurs, and which of them are static."""
    for parameter in artefact.signature.parameters:
        for _, part in walk_paths(parameter.spec, parameter.name):
            if isinstance(part, RecordSpec):
                statics = [name for name, type_ in part.fields if isinstance(type_, StaticSpec)]
                yield part.record, (tuple([name for name, _ in part.fields]), frozenset(statics))
    for program in artefact.programs:
        for tree in (program.result, *[type_ for _, type_ in program.choice.trees]):
            for node in nodes(tree):
                if isinstance(node, RecordType):
                    statics = [n for n, type_ in node.fields if isinstance(type_, StaticType)]
                    yield node.record, (tuple([n for n, _ in node.fields]), frozenset(statics))


def _python_signature(artefact: Artefact) -> PythonSignature:
    """Return the parameters for Python; an ArtefactError if no function can have them."""
    try:
        made = [
            Declared(
                parameter.name,
                Declared.KEYWORD_ONLY if parameter.keyword_only else Declared.POSITIONAL_OR_KEYWORD,
                default=artefact.defaults.get(parameter.name, Declared.empty),
            )
            for parameter in artefact.signature.parameters
        ]
        return PythonSignature(made)
    except ValueError as problem:
        raise ArtefactError(f"its parameters are none of a function: {problem}") from None
