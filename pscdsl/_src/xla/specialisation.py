"""A compiler's input: a typed program with numbers for its sizes, and all that decides its code.

A kernel makes a `Specialisation` from the arguments of a call, or from named sizes. The executable
store, whose keys are made of it, and the compiler get the same record.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import Signature as PythonSignature
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import numpy as np

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.program import Atom, Equation, Function, Literal, Var
from pscdsl._src.xla.device import CPU, Device
from pscdsl._src.xla.runtime.settings import LOOP_BYTES
from pscdsl.typing.array_types import ArrayType, leaves, paths
from pscdsl.typing.dtypes import KEY, DType
from pscdsl.typing.signatures import ArraySpec, Choice, OptionalSpec, Signature, Spec

if TYPE_CHECKING:
    from pscdsl._src.primitives.effects import Effect
    from pscdsl._src.xla.runtime.executable import Groups

Key: TypeAlias = Hashable
"""A key that tells one specialisation of a kernel from the others."""


class Compiler(Protocol):
    """A target as the executable store sees it: the options of a module, and its compiler."""

    def options(self, module: Any, /) -> Mapping[str, Any]:
        """Return the options with which a module is compiled first, which are a part of its key."""
        ...

    def compiled(
        self,
        module: Any,
        loop_bytes: int | None,
        device: Device,
        effects: Sequence[Effect] = (),
        groups: Groups = (),
    ) -> Any:
        """Return the executable of a module for a device, with the effects of its program.

        It takes each group of inputs as one array.
        """
        ...


@dataclass(frozen=True)
class Specialisation:
    """A program at the numbers that its sizes are, for a device."""

    program: Function
    sizes: Mapping[str, int]
    choice: Choice = field(default_factory=Choice)
    """The program's choice of all that the signature leaves open besides sizes."""
    donate: tuple[int, ...] = ()
    """The indices of the arrays whose memory results may take."""
    constants: tuple[str, ...] = ()
    """The parameters that the program does not take: their defaults are numbers in it."""
    number_defaults: tuple[str, ...] = ()
    """The parameters that could be constants."""
    device: Device = CPU
    groups: Groups = ()
    """The inputs that are passed together, if no executable is there yet; see `number_groups`."""
    loop_bytes: int | None = LOOP_BYTES
    """The bound of native loops that the target chose for the program at these sizes."""

    @cached_property
    def key(self) -> Key:
        """Return the key that tells it from the other specialisations of its kernel.

        `StoredCall.key` of `kernels.warm_start` makes the same key without the program.
        """
        choice = None if self.choice == Choice() else self.choice
        sizes = tuple([(name, self.sizes[name]) for name in self.program.dims])
        key = choice, sizes, self.donate, self.constants, self.device
        return (*key, *self.effects)

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        """The effects of the program, by the numbers of their host functions."""
        from pscdsl._src.primitives.effects import effects_of  # a loaded artefact has none

        return effects_of(self.program)

    @cached_property
    def parts(self) -> dict[str, str]:
        """Return everything that is fixed here, by name."""
        choice, dims = self.choice, self.program.dims
        parts = {f"size {name}": str(size) for name, size in self.sizes.items() if name in dims}
        parts |= {f"dtype {name}": str(dtype) for name, dtype in choice.dtypes}
        parts |= {f"rank of {name}": str(rank) for name, rank in choice.ranks}
        parts |= {f"length of `{path}`": str(length) for path, length in choice.lengths}
        parts |= {f"keys of `{path}`": ", ".join(keys) for path, keys in choice.keys}
        parts |= {f"static `{path}`": repr(static.value) for path, static in choice.statics}
        parts |= {f"`{path}`": "given" if given else "None" for path, given in choice.given}
        return parts | {
            f"`{name}`": "its default" if name in self.constants else "given"
            for name in self.number_defaults
        }

    @cached_property
    def arguments(self) -> dict[str, str]:
        """The type of each array, by its path."""
        leaves = [leaf for name, tree in self.program.parameters for leaf in paths(tree, name)]
        return {path: str(type_.substitute(dict(self.sizes))) for path, type_ in leaves}

    def __str__(self) -> str:
        return self.choice.at(self.sizes)


# Numbers that travel together: one array for all numbers of a dtype, which the program takes apart.
#
# A transfer takes as long for one number as for many. Which inputs are numbers is known when a
# program is made for a call. All calls with arguments of its types run this program, also if their
# numbers are on a device: there is one program, not two.

_FEWEST: Final = 2
"""The fewest numbers that travel together."""


def number_groups(
    leaves: Sequence[Any], types: Sequence[ArrayType], donate: Collection[int]
) -> Groups:
    """Return the leaves that are numbers of the host, those of each dtype together."""
    found: dict[DType, list[int]] = {}
    for at, (leaf, type_) in enumerate(zip(leaves, types, strict=True)):
        if _is_number(leaf) and not type_.shape and type_.dtype is not KEY and at not in donate:
            found.setdefault(type_.dtype, []).append(at)
    return tuple([tuple(each) for each in found.values() if len(each) >= _FEWEST])


# Numbers that a call leaves to their defaults: constants of the program that it runs.
#
# So the program uses their values: a power by default 2 is a product, and a call is as fast as with
# the numbers in the kernel. Programs differ by the omitted numbers, not by the given ones.


def number_defaults(signature: Signature, python: PythonSignature) -> dict[str, Any]:
    """Return the defaults that are numbers, of parameters that programs take as arrays."""
    defaults = {
        parameter.name: python.parameters[parameter.name].default
        for parameter in signature.parameters
    }
    arrays = [parameter.name for parameter in signature.parameters if _is_array(parameter.spec)]
    return {name: defaults[name] for name in arrays if _is_number(defaults[name])}


def _is_array(spec: Spec) -> bool:
    """Return whether an argument is an array, if it is not None."""
    return isinstance(spec.item if isinstance(spec, OptionalSpec) else spec, ArraySpec)


def _is_number(value: Any) -> bool:
    return value.__class__ in (bool, int, float, complex) or isinstance(value, np.generic)


def with_constants(program: Function, numbers: Mapping[str, Any]) -> Function:
    """Return the program with these parameters, each an array without axes, as numbers in it."""
    if not numbers:
        return program
    known: dict[Atom, Atom] = {}
    params = iter(program.body.params)
    for name, tree in program.parameters:
        owned = [next(params) for _ in leaves(tree)]
        if name in numbers:
            (var,) = owned
            known[var] = _literal(var, numbers[name])

    def of(atoms: tuple[Atom, ...]) -> tuple[Atom, ...]:
        return tuple([known.get(atom, atom) for atom in atoms])

    body = replace(
        program.body,
        params=tuple([param for param in program.body.params if param not in known]),
        equations=tuple(
            [
                Equation(equation.primitive, of(equation.inputs), equation.outputs, equation.span)
                for equation in program.body.equations
            ]
        ),
        results=of(program.body.results),
    )
    others = tuple([parameter for parameter in program.parameters if parameter[0] not in numbers])
    return replace(program, body=body, parameters=others)


def _literal(var: Var, value: Any) -> Literal:
    """Return the number in the dtype of a parameter."""
    dtype = var.type.dtype
    return Literal(np.asarray(value, to_numpy(dtype)).item(), dtype)
