"""Compiled programs: with which options they are compiled, how they are loaded, and run."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from pscdsl._src.ir.numpy_dtypes import is_masked, to_numpy
from pscdsl._src.support.processes import require
from pscdsl._src.xla import lapack
from pscdsl._src.xla.device import CPU, Device
from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.boot import Aval
from pscdsl._src.xla.runtime.devices import LiveDevice, is_in_pieces
from pscdsl._src.xla.runtime.devices import to_numpy as contents
from pscdsl._src.xla.runtime.memory import Recipe, Reuse
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dims import evaluate
from pscdsl.typing.dtypes import KEY

# The XLA options that the installed jaxlib accepts; it is asked once per option and process.
#
# XLA's options come and go with its versions, and it refuses to compile with one that it does not
# know.  So nothing is compiled with an option before XLA has said that it takes it.


NO_OPTION: Final = "xla_is_asked_for_an_option_that_does_not_exist"
PROGRAM: Final = (
    "func.func public @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"
)
"""A module for which XLA reads its options."""

_known_options: dict[tuple[Device, str, str], bool] = {}


def knows(name: str, value: Any, device: Device = CPU) -> bool:
    """Return whether XLA accepts a value: `knows("xla_cpu_prefer_vector_width", "512")`."""
    return name in known({name: value}, device)


def known(options: Mapping[str, Any], device: Device = CPU) -> dict[str, Any]:
    """Return the options that XLA accepts where it compiles for a device, in their order."""
    asked = {name: (device, name, repr(value)) for name, value in options.items()}
    new = {name: options[name] for name, key in asked.items() if key not in _known_options}
    if new and _takes(new, device):
        _known_options.update({asked[name]: True for name in new})
    else:
        for name, value in new.items():
            _known_options[asked[name]] = _takes({name: value}, device)
    return {name: value for name, value in options.items() if _known_options[asked[name]]}


def _takes(options: Mapping[str, Any], device: Device) -> bool:
    """Return whether XLA accepts all options: it then refuses only one that does not exist.

    XLA refuses before it makes any code, so that this takes less time than a program.
    """
    asked = _assign_device(boot.xla.CompileOptions(), device)
    asked.env_option_overrides = [*options.items(), (NO_OPTION, True)]
    here = device.placement
    try:
        here.client.compile_and_load(PROGRAM, here.devices, asked)
    except boot.jax.JaxRuntimeError as refused:
        return NO_OPTION in str(refused) and not any(name in str(refused) for name in options)
    return True  # it accepts every option, even a nonexistent one


# Compiled programs: how they are loaded, and run.


Groups: TypeAlias = tuple[tuple[int, ...], ...]
"""Inputs, by index, that are passed together, each in one array."""
Source: TypeAlias = Literal["compiled", "disk"]
"""The origin of an executable."""


class CompilationFailed(Exception):
    """XLA does not compile a module; the cause is its own exception."""


class Executable:
    """A compiled program: arrays to arrays, in the order of the module's `main`."""

    has_effects = False
    """Whether a call does more than to compute its results."""

    def __init__(
        self,
        loaded: Any,
        inputs: Sequence[Aval],
        outputs: Sequence[Aval],
        device: Device = CPU,
    ) -> None:
        self.loaded = loaded
        """jaxlib's executable."""
        self.device = device
        self.placement = device.placement
        """The placement of its arguments and results."""
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.groups: Groups = ()
        """The inputs that are passed together, in one array for each group, after the others."""
        self.entry = ""
        """The entry on disk that holds it, if there is one."""
        self.source: Source = "compiled"
        self.seconds = 0.0
        """The time that compiling or loading took."""
        self.not_stored = ""
        """Why it is not on disk, if it is not."""
        self.recipe: Recipe | None = None
        """The recipe of an executable whose results reuse memory; see `runtime.memory`."""
        self.reuse: Reuse | None = None
        """The function that calls that executable if memory is available."""
        self._handlers = [boot.result_handler(aval, self.placement.sharding) for aval in outputs]

    @property
    def single(self) -> tuple[int, ...]:
        """The inputs that are in no group, in the order in which the program takes them."""
        packed = {at for group in self.groups for at in group}
        return tuple([at for at in range(len(self.inputs)) if at not in packed])

    @property
    def taken(self) -> tuple[Aval, ...]:
        """The types of the arrays that the program takes."""
        together = [Aval((len(each),), self.inputs[each[0]].dtype) for each in self.groups]
        return (*[self.inputs[at] for at in self.single], *together)

    def execute(self, buffers: Sequence[Any]) -> list[Any]:
        """Start the program on device arrays; the results may still be being computed."""
        return self.start(buffers) if self.reuse is None else self.reuse(buffers)

    def start(self, buffers: Sequence[Any]) -> list[Any]:
        """Start the program with new memory for the results."""
        require()
        results: list[Any] = self.loaded.execute_sharded(buffers).consume_with_handlers(
            self._handlers
        )
        return results

    def run(self, leaves: Sequence[Any]) -> list[Any]:
        """Start the program on device arrays, NumPy arrays and Python scalars, checked."""
        if len(leaves) != len(self.inputs):
            raise ValueError(f"{len(leaves)} arguments for {len(self.inputs)} parameters")
        here = self.placement
        every = [transfer(leaf, aval, here) for leaf, aval in zip(leaves, self.inputs, strict=True)]
        if self.groups:
            together = [np.array([contents(every[at]) for at in each]) for each in self.groups]
            every = [*[every[at] for at in self.single], *map(here.put, together)]
        return self.execute(every)

    def text(self) -> str:
        """Return the optimised program, in XLA's text form."""
        return text_of(self.loaded)

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's counts: flops, transcendentals, bytes accessed."""
        return dict(self.loaded.cost_analysis())

    def memory(self) -> dict[str, int]:
        """Bytes for arguments, results, temporaries, and results in donated arguments."""
        return memory_of(self.loaded)

    def serialize(self) -> bytes:
        """Return the compiled code, for the same jaxlib on the same kind of machine."""
        blob: bytes = self.loaded.serialize()
        return blob + _written(self.groups) if self.groups else blob


def text_of(compiled: Any) -> str:
    """Return the optimised program of jaxlib's executable, in XLA's text form."""
    options = boot.hlo.HloPrintOptions.short_parsable()
    return "\n\n".join(m.to_string(options) for m in compiled.hlo_modules())


def memory_of(compiled: Any) -> dict[str, int]:
    """Return the bytes that jaxlib's executable takes, by purpose."""
    stats = compiled.get_compiled_memory_stats()
    return {
        "arguments": stats.argument_size_in_bytes,
        "results": stats.output_size_in_bytes,
        "temporaries": stats.temp_size_in_bytes,
        "aliased": stats.alias_size_in_bytes,
        "code": stats.generated_code_size_in_bytes,
    }


def transfer(leaf: Any, aval: Aval, here: LiveDevice) -> Any:
    """Return a leaf as an array of the wanted type on the device of a placement."""
    if type(leaf) is boot.ArrayImpl:
        if leaf.aval.dtype != aval.dtype or leaf.aval.shape != aval.shape:
            raise ValueError(f"argument is {leaf.aval}, expected {aval}")
        if leaf.is_deleted():
            raise ValueError("argument has been deleted, or donated to another call")
        if here.holds(leaf):
            return leaf
        if boot.is_ours(leaf) and is_in_pieces(leaf):
            from pscdsl._src.xla.runtime.pieces import misplaced

            raise misplaced(leaf)
        return here.put(contents(leaf), aval)
    dtype = getattr(leaf, "dtype", None)
    if dtype is None:
        with np.errstate(over="raise"):  # a float that its dtype cannot hold
            return here.put(leaf, aval)
    if dtype.newbyteorder("=") != aval.dtype:
        raise ValueError(f"argument is {dtype}, expected {aval.dtype}")
    if is_masked(leaf):
        raise TypeError("argument is a masked array")
    return here.put(leaf, aval)


def load_executable(
    blob: bytes, inputs: Sequence[Aval], outputs: Sequence[Aval], device: Device = CPU
) -> Executable:
    """Load an executable from its serialised code; raise jaxlib's JaxRuntimeError if damaged."""
    if lapack.PREFIX.encode() in blob:
        boot.lapack()
    blob, groups = _split(blob)
    here = device.placement
    options = compile_options(None, {}, device)
    loaded = here.client.deserialize_executable(blob, here.devices, options)
    executable = Executable(loaded, inputs, outputs, device)
    executable.groups = groups
    return executable


_MARK: Final = b"groups of inputs"
"""The end of code whose groups are written after it, in front of their length in 4 bytes."""


def _written(groups: Groups) -> bytes:
    text = repr(groups).encode()
    return text + len(text).to_bytes(4, "little") + _MARK


def _split(blob: bytes) -> tuple[bytes, Groups]:
    """Return compiled code and its groups, as `_written` wrote them."""
    if not blob.endswith(_MARK):
        return blob, ()
    end = len(blob) - len(_MARK) - 4
    start = end - int.from_bytes(blob[end : end + 4], "little")
    groups: Groups = ast.literal_eval(blob[start:end].decode())
    return blob[:start], groups


def compile_options(
    loop_bytes: int | None, options: Mapping[str, Any], device: Device = CPU
) -> Any:
    """Compile options in jaxlib's form, without those that XLA does not know.

    See Note [Backend extra options].
    """
    options = known(options, device)
    cls = boot.xla.CompileOptions
    made = cls()
    if loop_bytes is not None:
        entry = _field(1, b"xla_cpu_small_while_loop_byte_threshold")
        entry += _field(2, str(loop_bytes).encode())
        spliced = _field(3, _field(3, _field(500, entry)))
        made = cls.ParseFromString(made.SerializeAsString() + spliced)
    if options:
        made.env_option_overrides = list(options.items())
    return _assign_device(made, device)


def _assign_device(options: Any, device: Device) -> Any:
    """Compile options for a device, which is the first one if they say nothing of it."""
    (handle,) = device.placement.device_list
    if handle.id:
        assignment = boot.xla.DeviceAssignment.create(np.array([[handle.id]]))
        options.device_assignment = assignment
    return options


def set_replicas(options: Any, ids: Sequence[int]) -> None:
    """Let compile options be for a program that each of some devices runs."""
    assignment = boot.xla.DeviceAssignment.create(np.array(ids, np.int32)[:, None])
    for each in (options, options.executable_build_options):
        each.num_replicas, each.num_partitions = len(ids), 1
        each.device_assignment = assignment


# Note [Backend extra options]
# Some options of the CPU backend live in a string map that jaxlib's Python classes do not show:
# CompileOptions.executable_build_options (3) .debug_options (3) .xla_backend_extra_options (500).
# The map's entries are appended to the serialised message instead; parsing merges them.


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _field(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def aval_of(type_: ArrayType, sizes: Mapping[str, int]) -> Aval:
    """Return the aval of an array type; keys are the words that they are stored as."""
    shape = tuple([evaluate(size, sizes) for size in type_.shape])
    return Aval((*shape, 2) if type_.dtype is KEY else shape, to_numpy(type_.dtype))
