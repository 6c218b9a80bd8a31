"""The names of `jax.lax`."""

from numpy import abs as abs
from numpy import (
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    broadcast_shapes,
    cbrt,
    ceil,
    conj,
    cos,
    cosh,
    exp,
    exp2,
    expm1,
    floor,
    imag,
    log,
    log1p,
    nextafter,
    real,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
)
from numpy import equal as eq
from numpy import fmod as rem
from numpy import greater as gt
from numpy import greater_equal as ge
from numpy import isfinite as is_finite
from numpy import left_shift as shift_left
from numpy import less as lt
from numpy import less_equal as le
from numpy import maximum as max
from numpy import minimum as min
from numpy import multiply as mul
from numpy import negative as neg
from numpy import not_equal as ne
from numpy import power as pow
from numpy import right_shift as shift_right_arithmetic
from numpy import subtract as sub

from jax.lax._control import (
    associative_scan,
    cond,
    fori_loop,
    map,
    scan,
    switch,
    while_loop,
)
from jax.lax._elements import (
    Precision,
    clamp,
    convert_element_type,
    div,
    integer_pow,
    round,
    rsqrt,
    select,
    select_n,
)
from jax.lax._shapes import (
    argmax,
    argmin,
    batch_matmul,
    broadcast,
    broadcast_in_dim,
    broadcasted_iota,
    concatenate,
    cumlogsumexp,
    cummax,
    cummin,
    cumprod,
    cumsum,
    dot,
    dot_general,
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
    expand_dims,
    full,
    full_like,
    index_in_dim,
    iota,
    pad,
    reduce_max,
    reduce_min,
    reduce_prod,
    reduce_sum,
    reshape,
    rev,
    slice,
    slice_in_dim,
    sort,
    squeeze,
    top_k,
    transpose,
)
from pscdsl import complex, stop_gradient
from pscdsl.special import betainc as betainc
from pscdsl.special import digamma, erf, erfc, polygamma, zeta
from pscdsl.special import erfinv as erf_inv
from pscdsl.special import expit as logistic
from pscdsl.special import gammainc as igamma
from pscdsl.special import gammaincc as igammac
from pscdsl.special import gammaln as lgamma
from pscdsl.special import i0e as bessel_i0e
from pscdsl.special import i1e as bessel_i1e
