# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
"""The conditions of jaxlib's first use: its version, our settings, the state that jax installs."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Final

import numpy as np

from pscdsl._src.support.processes import once as once
from pscdsl._src.support.versions import warn_if_untried

# The state and class attributes that jaxlib needs before its first use, as jax installs them.
#
# Works beside a real jax in the same process, imported before or after: state is set only while jax
# is absent, and attributes are attached to jaxlib's classes only where there are none.  Arrays have
# two meanings then; see `beside_jax`.


def untyped(module: str) -> Any:
    """Return a module of jaxlib; they have no types, and only this package uses them."""
    return import_module(f"jaxlib.{module}")


jax: Final = untyped("_jax")
"""jaxlib's main extension module."""
hlo: Final = untyped("_hlo")
xla: Final = untyped("xla_client")
ArrayImpl: Final = jax.ArrayImpl
HostBufferSemantics: Final = jax.HostBufferSemantics

_kept: list[object] = []
"""Objects that jaxlib uses without owning a reference."""


class Aval:
    """Shape and dtype of an array, in the form in which jaxlib reads them.

    An array that carries one is the result of a kernel; those of jax carry jax's own class.
    """

    __slots__ = ("_of_jax", "dtype", "shape", "weak_type")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape = shape
        self.dtype = dtype
        self.weak_type = False
        self._of_jax: Any = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Aval) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    def of_jax(self) -> Any:
        """Return jax's equivalent, whose class must be loaded."""
        if self._of_jax is None:
            self._of_jax = sys.modules["jax.core"].ShapedArray(self.shape, self.dtype)
        return self._of_jax


def _native(name: str) -> Any:
    """Return the original getter of an attribute, whatever jax is shown instead."""
    attribute: Any = vars(ArrayImpl)[name]
    return getattr(attribute, "fget", None) or attribute.__get__


raw_aval: Final = _native("aval")
"""The `aval` that an array was made with; see `beside_jax` for the one that a jax is shown."""
is_committed: Final = _native("_committed")
"""Return whether an array was committed to a device."""


def is_ours(array: Any) -> bool:
    """Return whether an array of jaxlib's class is the result of a kernel, not jax's."""
    return type(raw_aval(array)) is Aval


class Never:
    """The type of tracers; there are none here."""


def attach(cls: Any, **attributes: object) -> None:
    """Give a class written in C++ the attributes that it does not have."""
    theirs: set[str] = {name for each in cls.__mro__[:-1] for name in vars(each)}
    for name, value in attributes.items():
        if name not in theirs:
            setattr(cls, name, value)


def detach(cls: Any, **attributes: object) -> None:
    """Remove attributes again, except those that have been replaced meanwhile."""
    for name, value in attributes.items():
        if vars(cls).get(name) is value:
            delattr(cls, name)


JAX: Final = "jax._src.config"
"""The module of a real jax that keeps jaxlib's state, once it is loaded in this process."""


def jax_is_loaded() -> bool:
    """Return whether jax itself keeps jaxlib's state in this process."""
    return JAX in sys.modules


@once
def boot() -> None:
    """Prepare jaxlib; called before anything else of it, the work is done once."""
    warn_if_untried("jaxlib", untyped("version").__version__)
    untyped("utils").absl_set_min_log_level(1)
    if jax_is_loaded():
        return
    attach(jax.SingleDeviceSharding, **_of_shardings())
    state, config = jax.jax_jit, jax.config.Config
    enable_x64 = config("enable_x64", True, include_in_jit_key=True, include_in_trace_context=True)
    disable_jit = config("disable_jit", False)
    post_hook = config("post_hook", None)
    state.set_enable_x64_state(enable_x64)
    state.set_disable_jit_state(disable_jit)
    state.set_post_hook_state(post_hook)
    _kept.extend((enable_x64, disable_jit, post_hook))
    jax.set_tracer_class(Never)


@once
def _of_shardings() -> dict[str, object]:
    """Return the Python half of a placement on one device."""
    replicated = hlo.HloSharding.replicate()

    def equal(a: Any, b: Any) -> bool:
        return a is b or (
            type(a) is type(b) and a._device == b._device and a._memory_kind == b._memory_kind
        )

    return {
        "_to_xla_hlo_sharding": lambda self, rank: replicated,
        "shard_shape": lambda self, shape: shape,
        "is_fully_replicated": property(lambda self: True),
        "is_fully_addressable": property(lambda self: True),
        "device_set": property(lambda self: {self._device}),
        "_device_assignment": property(lambda self: (self._device,)),
        "memory_kind": property(lambda self: self._memory_kind),
        "__eq__": equal,
        "__hash__": lambda self: hash((self._device, self._memory_kind)),
    }


def leave_to_jax() -> None:
    """Take our half of placements away: jax has brought its own."""
    detach(jax.SingleDeviceSharding, **_of_shardings())


def result_handler(aval: Aval, sharding: Any) -> Any:
    """Return the constructor of an array from one result of an execution."""
    try:
        return jax.array_result_handler(aval, sharding, True, True)
    except TypeError:  # from 0.11.2 on, checks are never made
        return jax.array_result_handler(aval, sharding, True)


@once
def lapack() -> None:
    """Make LAPACK's routines available as custom calls; they come with SciPy."""
    routines = untyped("cpu._lapack")
    routines.initialize()
    if jax_is_loaded():
        return  # registered by jax already
    for name, handler in routines.registrations().items():
        version = int(name.endswith("_ffi"))
        xla.register_custom_call_target(name, handler, platform="cpu", api_version=version)
