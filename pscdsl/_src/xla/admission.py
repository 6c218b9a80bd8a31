"""The contents that a module read from a file may have: those of exported kernels, nothing else.

A module that is right for MLIR may still make XLA overflow its stack, write outside of its arrays
or take those of the caller: by recursive functions, by routines of LAPACK with results that are too
small, or by parameters that give their memory away in secret. So everything that is not known to be
good is refused: operations and attributes by lists, routines by the shapes that they need.

This does not make the modules of strangers safe: C++ code has read them before, and compiles them.
`pscdsl._src.artefacts.format` says whose modules to trust.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from pscdsl._src.xla import lapack
from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.emit.facts import APART

MOST_OPERATIONS: Final = 1 << 18
"""The most operations after inlining all calls."""
MOST_DEPTH: Final = 1 << 12
"""The longest chain of dependent operations: XLA visits them by recursion."""
MOST_NESTED: Final = 100
"""The deepest nesting of calls and regions."""
MOST_ELEMENTS: Final = 1 << 40

_OPERATIONS: Final = frozenset(
    f"stablehlo.{name}"
    for name in "abs add and atan2 bitcast_convert broadcast_in_dim case cbrt ceil cholesky clamp "
    "compare complex concatenate constant convert convolution cosine count_leading_zeros "
    "custom_call divide dot_general dynamic_slice dynamic_update_slice exponential "
    "exponential_minus_one fft floor gather if imag iota is_finite log log_plus_one logistic map "
    "maximum minimum multiply negate not optimization_barrier or pad popcnt power real reduce "
    "reduce_precision reduce_window remainder reshape return reverse rng_bit_generator "
    "round_nearest_afz round_nearest_even rsqrt scatter select select_and_scatter shift_left "
    "shift_right_arithmetic shift_right_logical sign sine slice sort sqrt subtract tan tanh "
    "transpose triangular_solve while xor".split()
) | {"func.call", "func.return"}
"""Operations that compute their results only from their operands, of known shapes."""
_COLLECTIVES: Final = frozenset(
    f"stablehlo.{name}"
    for name in (
        "all_gather all_reduce all_to_all collective_permute reduce_scatter replica_id".split()
    )
)
"""Operations of the devices of a mesh, of which each is in one group."""
_ATTRIBUTES: Final = frozenset(
    "algorithm all_gather_dim api_version backend_config base_dilations batch_group_count "
    "broadcast_dimensions call_target_name called_computations callee compare_type "
    "comparison_direction concat_dimension dimension dimension_numbers dimensions "
    "dot_dimension_numbers edge_padding_high edge_padding_low exponent_bits "
    "feature_group_count fft_length fft_type has_side_effect indices_are_sorted "
    "interior_padding iota_dimension is_stable left_side lhs_dilation limit_indices lower "
    "mantissa_bits operand_layouts output_operand_aliases padding permutation "
    "precision_config replica_groups result_accuracy result_layouts rhs_dilation "
    "rng_algorithm scatter_dimension scatter_dimension_numbers slice_sizes "
    "source_target_pairs split_count split_dimension start_indices strides transpose_a "
    "unique_indices unit_diagonal value "
    "window_dilations window_dimensions window_reversal window_strides".split()
)
"""The attributes of these operations; XLA reads others, such as `xla_shape`, and trusts them."""
_GIVES: Final = {"jax.buffer_donor": True}
_OPTION: Final = re.compile(r"(\w+) = (\d+) : ui8\b")
_EMPTY: Final[Mapping[str, object]] = {
    "backend_config": {}, "called_computations": [], "output_operand_aliases": []
}  # fmt: skip
"""Attributes of custom calls that are left out where they are empty."""


class NotAdmitted(Exception):
    """A module contains something else; the message names it."""


class _Extent(NamedTuple):
    operations: int
    depth: int


def require(
    module: Any, donate: Collection[int], admitted: Collection[str], devices: int = 1
) -> None:
    """Refuse a module unless all its contents are known to be good.

    `main` gives away the memory of exactly the parameters whose indices are in `donate`. Custom
    calls whose targets are in `admitted` are accepted. It runs on so many `devices`, which exchange
    only if they are several.
    """
    _Modules(module, frozenset(admitted), devices).require(frozenset(donate))


class _Modules:
    def __init__(self, module: Any, admitted: frozenset[str], devices: int) -> None:
        self._module = module
        self._admitted = admitted
        self._devices = devices
        self._functions: dict[str, Any] = {}
        self._extents: dict[str, _Extent | None] = {}
        """The extent of each function; None while it is being computed."""

    def require(self, donate: Collection[int]) -> None:
        _require_known(self._module.operation, {"sym_name"}, c.FAST)
        for each in self._module.body.operations:
            operation = each.operation
            if operation.name != "func.func":
                raise NotAdmitted(f"there is `{operation.name}` beside its functions")
            self._functions[operation.attributes["sym_name"].value] = operation
        if "main" not in self._functions:
            raise NotAdmitted("there is no function `main`")
        for name, function in self._functions.items():
            is_main = name == "main"
            _require_function(function, donate if is_main else (), is_main=is_main)
        for name in self._functions:
            self._function_extent(name, 0)

    def _function_extent(self, name: str, nested: int) -> _Extent:
        if name in self._extents:
            found = self._extents[name]
            if found is None:
                raise NotAdmitted(f"its function `{name}` calls itself")
            return found
        if name not in self._functions:
            raise NotAdmitted(f"it calls `{name}`, which it does not have")
        self._extents[name] = None
        (region,) = self._functions[name].regions
        made = self._region_extent(region, {}, 0, nested + 1)
        if made.operations > MOST_OPERATIONS:
            raise NotAdmitted(f"it has more than {MOST_OPERATIONS} operations")
        if made.depth > MOST_DEPTH:
            raise NotAdmitted(
                f"more than {MOST_DEPTH} of its operations wait for one another; a long loop is "
                "written with `psc.scan` or `psc.fori_loop`"
            )
        self._extents[name] = made
        return made

    def _region_extent(
        self, region: Any, depths: dict[Any, int], start: int, nested: int
    ) -> _Extent:
        """Return the extent of a region; add the depths of its values to `depths`."""
        if nested > MOST_NESTED:
            raise NotAdmitted(
                f"more than {MOST_NESTED} of its loops and calls stand in one another"
            )
        blocks = list(region.blocks)
        if len(blocks) != 1:
            raise NotAdmitted("a function or a loop of it has no body, or several")
        for argument in blocks[0].arguments:
            _require_tensor(argument.type)
            depths[argument] = start
        count, deepest = 0, start
        for each in blocks[0].operations:
            made = self._operation_extent(each.operation, depths, nested)
            count, deepest = count + made.operations, max(deepest, made.depth)
        return _Extent(count, deepest)

    def _operation_extent(self, operation: Any, depths: dict[Any, int], nested: int) -> _Extent:
        name = operation.name
        if name in _COLLECTIVES and self._devices > 1:
            self._require_groups(operation)
        elif name not in _OPERATIONS:
            raise NotAdmitted(f"it has an operation that no kernel has: `{name}`")
        _require_known(operation, _ATTRIBUTES, APART if name == "func.call" else {})
        start = max([depths[operand] for operand in operation.operands], default=0)
        count, depth = 1, start + 1
        if name == "func.call":
            callee = self._function_extent(operation.attributes["callee"].value, nested)
            count, depth = callee.operations, start + callee.depth
        elif name == "stablehlo.custom_call":
            self._require_call(operation)
        for region in operation.regions:
            inner = self._region_extent(region, depths, start, nested + 1)
            count, depth = count + inner.operations, max(depth, inner.depth + 1)
        for result in operation.results:
            _require_tensor(result.type)
            depths[result] = depth
        return _Extent(count, depth)

    def _require_groups(self, operation: Any) -> None:
        """Refuse groups of devices in which not each device is once."""
        if operation.name == "stablehlo.replica_id":
            return
        if operation.name == "stablehlo.collective_permute":
            self._require_ring(operation)
            return
        groups = np.array(c.mlir.DenseIntElementsAttr(operation.attributes["replica_groups"]))
        if groups.ndim != 2 or sorted(groups.flat) != [*range(self._devices)]:
            raise NotAdmitted(f"its devices exchange in groups that are none: {groups.tolist()}")

    def _require_ring(self, operation: Any) -> None:
        """Refuse pairs of devices in which not each device sends once, and receives once."""
        pairs = np.array(c.mlir.DenseIntElementsAttr(operation.attributes["source_target_pairs"]))
        every = [*range(self._devices)]
        if pairs.ndim != 2 or [sorted(each) for each in pairs.T] != [every, every]:
            raise NotAdmitted(f"its devices send to each other in no order: {pairs.tolist()}")

    def _require_call(self, operation: Any) -> None:
        """Refuse a custom call unless it is admitted, or LAPACK's as kernels call it."""
        target: str = operation.attributes["call_target_name"].value
        said = {**_texts(c.attribute(_EMPTY)), **_texts(operation.attributes)}
        if said["called_computations"] != _texts(c.attribute(_EMPTY))["called_computations"]:
            raise NotAdmitted(f"it gives functions to {target}")
        if target in self._admitted:
            return
        routine = lapack.routine_of(target)
        if routine is None:
            raise NotAdmitted(f"it calls {target}, which must be admitted by name")
        operands, results = (
            [(known.dtype, known.shape) for known in [c.facts(value.type) for value in values]]
            for values in (operation.operands, operation.results)
        )
        options = {
            name: chr(int(number)) for name, number in _OPTION.findall(said["backend_config"])
        }
        if not lapack.fits(target, operands, results, options):
            raise NotAdmitted(f"it calls {target} with arrays that are not those which it needs")
        shapes = [shape for _, shape in operands], [shape for _, shape in results]
        call = lapack.ON_CPU.call(routine, operands[0][0], options)
        wanted = c.attribute(lapack.attributes(routine, *shapes, call))
        for name, text in _texts(wanted).items():
            if said.get(name) != text:
                raise NotAdmitted(f"it calls {target} otherwise than kernels do")


def _require_function(function: Any, donate: Collection[int], *, is_main: bool) -> None:
    """Refuse a function with attributes other than its name and the memory it gives away."""
    _require_known(function, {"sym_name", "function_type", "sym_visibility", "arg_attrs"})
    attributes = function.attributes
    if is_main and attributes["sym_visibility"].value != "public":
        raise NotAdmitted("its `main` is not public")
    each_says = map(str, attributes["arg_attrs"] if "arg_attrs" in attributes else ())
    given = [(place, text) for place, text in enumerate(each_says) if text != "{}"]
    gives = str(c.attribute(_GIVES))
    if given != [(place, gives) for place in sorted(donate)]:
        raise NotAdmitted("its parameters give away other memory than it says")


def _require_known(
    operation: Any, known: Collection[str], marks: Mapping[str, object] = MappingProxyType({})
) -> None:
    """Refuse attributes that have other names, and are not exactly these marks."""
    attributes = operation.attributes
    for place in range(len(attributes)):
        name = attributes[place].name
        if name in known:
            continue
        if name not in marks or str(attributes[place]) not in _texts(c.attribute(marks)).values():
            raise NotAdmitted(f"it says what no kernel says: `{name}`")


def _require_tensor(type: Any) -> None:  # noqa: A002
    """Refuse a type unless it is an array of a known dtype and size that is not too large."""
    if not isinstance(type, c.mlir.RankedTensorType):
        raise NotAdmitted(f"it computes what is no array: {type}")
    if not type.has_static_shape or type.encoding is not None or not c.is_known(type):
        raise NotAdmitted(f"it computes arrays that no kernel has: {type}")
    if math.prod(type.shape) > MOST_ELEMENTS:
        raise NotAdmitted(f"it computes an array of more than {MOST_ELEMENTS} elements: {type}")


def _texts(attributes: Any) -> dict[str, str]:
    """Attributes by name, each as text: of some that are no objects in Python, jaxlib aborts."""
    each = [attributes[place] for place in range(len(attributes))]
    return {one.name: str(one) for one in each}
