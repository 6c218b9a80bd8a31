"""The public names, each with the module that it comes from; they are listed here alone.

To type checkers this is the package; the package itself reads it, and loads what is asked for.
"""

from pscdsl import (
    arrays as arrays,
    debug as debug,
    distributed as distributed,
    numpy as numpy,
    random as random,
    special as special,
    stdlib as stdlib,
    tree as tree,
    typing as typing,
)
from pscdsl.arrays import (
    Array as Array,
    Bool as Bool,
    Complex as Complex,
    Float as Float,
    Inexact as Inexact,
    Int as Int,
    Integer as Integer,
    Key as Key,
    Num as Num,
    Shaped as Shaped,
    Static as Static,
    Tree as Tree,
    UInt as UInt,
    bf16 as bf16,
    bool_ as bool_,
    c64 as c64,
    c128 as c128,
    f16 as f16,
    f32 as f32,
    f64 as f64,
    i8 as i8,
    i16 as i16,
    i32 as i32,
    i64 as i64,
    u8 as u8,
    u16 as u16,
    u32 as u32,
    u64 as u64,
)
from pscdsl._src.artefacts.format import ArtefactError as ArtefactError
from pscdsl._src.kernels.lowered import compile_all as compile_all
from pscdsl._src.kernels.frozen_constants import constant as constant
from pscdsl._src.language.control import (
    associative_scan as associative_scan,
    avg_pool as avg_pool,
    complex as complex,
    cond as cond,
    conv as conv,
    conv_transpose as conv_transpose,
    dynamic_slice as dynamic_slice,
    dynamic_update as dynamic_update,
    fori_loop as fori_loop,
    map as map,
    map_reduce as map_reduce,
    max_pool as max_pool,
    reduce_window as reduce_window,
    reveal_type as reveal_type,
    scan as scan,
    scope as scope,
    switch as switch,
    top_k as top_k,
    triangular_solve as triangular_solve,
    update as update,
    while_loop as while_loop,
)
from pscdsl._src.language.devices import (
    axis_gather as axis_gather,
    axis_index as axis_index,
    axis_shift as axis_shift,
    axis_size as axis_size,
    axis_sum as axis_sum,
    on_each as on_each,
)
from pscdsl._src.extensions.custom import (
    UserPrimitive as UserPrimitive,
    primitive as primitive,
    register_translation_rule as register_translation_rule,
)
from pscdsl._src.extensions.functions import (
    custom_jvp as custom_jvp,
    custom_vjp as custom_vjp,
)
from pscdsl._src.kernels.directional import (
    jvp as jvp,
    linear_transpose as linear_transpose,
    linearize as linearize,
    vjp as vjp,
)
from pscdsl._src.calls.errors import (
    ArgumentError as ArgumentError,
    CheckError as CheckError,
)
from pscdsl._src.kernels.gradient_checks import check_grads as check_grads
from pscdsl._src.primitives.effects import CheckFailed as CheckFailed
from pscdsl.typing.placements import Placement as Placement
from pscdsl._src.ir.primitive import Hlo as Hlo
from pscdsl._src.xla.device import (
    Device as Device,
    UnsupportedDeviceError as UnsupportedDeviceError,
    devices as devices,
)
from pscdsl._src.kernels.gathering import gather as gather
from pscdsl._src.xla.mesh import (
    Mesh as Mesh,
    PlacementError as PlacementError,
    Shard as Shard,
    place as place,
)
from pscdsl._src.xla.runtime.devices import from_dlpack as from_dlpack
from pscdsl._src.xla.profiling import profile as profile
from pscdsl._src.kernels.kernel import (
    Kernel as Kernel,
    kernel as kernel,
)
from pscdsl._src.kernels.loaded import (
    Loaded as Loaded,
    load as load,
)
from pscdsl._src.language.debug import (
    check as check,
    progress as progress,
)
from pscdsl._src.language.records import Record as Record
from pscdsl._src.language.control import (
    custom_linear_solve as custom_linear_solve,
    custom_root as custom_root,
)
from pscdsl._src.language.elements import stand_in as stand_in
from pscdsl._src.kernels.transformations import (
    checkpoint as checkpoint,
    grad as grad,
    hessian as hessian,
    jacfwd as jacfwd,
    jacrev as jacrev,
    stop_gradient as stop_gradient,
    value_and_grad as value_and_grad,
    vmap as vmap,
)
from pscdsl._src.extensions.functions import (
    PureFunction as PureFunction,
    pure as pure,
)
from pscdsl._src.support.versions import UntriedVersionWarning as UntriedVersionWarning

__all__: list[str]
__version__: str
