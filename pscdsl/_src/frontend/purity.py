"""Impure functions by name, and mutable values."""

from __future__ import annotations

import ast
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, TypeVar, assert_never

import numpy as np

from pscdsl._src.frontend.values import (
    MAX_BITS,
    MAX_ITEMS,
    AnyValue,
    Applicable,
    CPythonFunction,
    EnumMember,
    External,
    MapValue,
    Once,
    Open,
    Partial,
    Place,
    Poison,
    Poisoned,
    RecordValue,
    Simple,
    VectorValue,
    describe,
    is_traced,
    require_narrow,
    require_short,
    tree_parts,
    with_tree_parts,
)
from pscdsl._src.ir.builder import Builder, Weak
from pscdsl._src.language.elements import frozen, is_frozen
from pscdsl._src.language.meanings import MEANINGS
from pscdsl.numpy import methods
from pscdsl.typing.codes.language import ArrayLeavesProgram, BadArguments, NotStatic, Unsupported
from pscdsl.typing.codes.language_evaluation import TooLarge
from pscdsl.typing.codes.limits import NotSupported, UnknownFunction, UnknownValue
from pscdsl.typing.codes.purity import HiddenInput, Mutation, RandomState, SetOrder, SideEffect
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic, Failure, Label
from pscdsl.typing.python_containers import is_dict, is_known_array, is_sequence, is_slice, is_tuple

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from pscdsl._src.frontend.interpreter.frames import Binding

T = TypeVar("T")

# Impure functions by name, and their replacements.


# The names here of functions of other libraries: `jax.numpy.exp` is `np.exp`.


_LIBRARIES: Final = ("jax", "scipy", "tensorflow", "torch")
"""Libraries whose functions have counterparts here, by the tables below and by no likeness."""

_SAME_NAMES: Final = {
    "jax": "pscdsl",
    "jax.lax": "pscdsl",
    "jax.numpy": "numpy",
    "jax.numpy.fft": "numpy.fft",
    "jax.numpy.linalg": "numpy.linalg",
    "jax.random": "pscdsl.random",
    "jax.scipy.special": "pscdsl.special",
    "jax.tree": "pscdsl.tree",
    "torch.fft": "numpy.fft",
}
"""Modules whose functions are called the same here and take the same arguments, where there are."""

_OTHER_ARGUMENTS: Final = frozenset(
    ("jax.lax.conv", "jax.lax.conv_transpose", "jax.lax.reduce_window")
)

_LAX: Final = (
    "abs acos acosh asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor "
    "cbrt ceil concatenate conj cos cosh dot exp exp2 expand_dims expm1 floor full full_like imag "
    "log log1p nextafter real reshape sign sin sinh sqrt square squeeze tan tanh transpose"
).split()
"""Functions of `jax.lax` with the meaning of the NumPy function of the same name."""

_TORCH: Final = (
    "abs acos acosh add all any arctan argmax argmin argsort asin asinh atan atan2 atanh ceil "
    "clip cos cosh cumprod cumsum diag diff dot einsum exp exp2 expm1 eye flip floor fmod full "
    "full_like hypot isfinite isinf isnan kron linspace log log10 log1p log2 logaddexp "
    "logical_and logical_not logical_or logical_xor matmul maximum minimum mean moveaxis multiply "
    "negative ones_like outer prod reciprocal remainder reshape roll sign sin sinh sqrt square "
    "squeeze stack subtract sum swapaxes tan tanh tile trace tril triu trunc where zeros_like"
).split()
"""Functions of `torch` with that property for positional arguments."""

_LINALG: Final = "det eigh eigvalsh inv lstsq norm pinv solve svd svdvals".split()
"""Functions of `scipy.linalg` with that property for arrays as the only arguments."""

_TORCH_LINALG: Final = "cholesky det eigh eigvalsh inv pinv slogdet solve svdvals".split()

_ACTIVATIONS: Final = (
    "celu elu glu hard_sigmoid hard_silu hard_tanh leaky_relu log_sigmoid log_softmax mish "
    "relu relu6 selu sigmoid silu soft_sign softmax softplus swish"
).split()

_DISTRIBUTIONS: Final = {
    "bernoulli.logpmf": "discrete_distributions.bernoulli_log_mass",
    "beta.cdf": "distributions.beta_cdf",
    "beta.logpdf": "distributions.beta_log_density",
    "beta.sf": "distributions.beta_survival",
    "binom.cdf": "discrete_distributions.binomial_cdf",
    "binom.logpmf": "discrete_distributions.binomial_log_mass",
    "cauchy.cdf": "distributions.cauchy_cdf",
    "cauchy.logpdf": "distributions.cauchy_log_density",
    "laplace.cdf": "distributions.laplace_cdf",
    "laplace.logpdf": "distributions.laplace_log_density",
    "logistic.cdf": "distributions.logistic_cdf",
    "logistic.logpdf": "distributions.logistic_log_density",
    "norm.cdf": "distributions.normal_cdf",
    "norm.logpdf": "distributions.normal_log_density",
    "poisson.cdf": "discrete_distributions.poisson_cdf",
    "poisson.logpmf": "discrete_distributions.poisson_log_mass",
    "poisson.sf": "discrete_distributions.poisson_survival",
    "t.cdf": "distributions.student_t_cdf",
    "t.logpdf": "distributions.student_t_log_density",
}
"""Methods of the distributions of `scipy.stats` that have their parameters in the same order."""

RENAMED: Final = {
    "jax.ad_checkpoint.checkpoint": "pscdsl.checkpoint",
    "jax.flatten_util.ravel_pytree": "pscdsl.tree.ravel",
    "jax.jacobian": "pscdsl.jacrev",
    "jax.lax.add": "numpy.add",
    "jax.lax.batch_matmul": "numpy.matmul",
    "jax.lax.bessel_i0e": "pscdsl.special.i0e",
    "jax.lax.bessel_i1e": "pscdsl.special.i1e",
    "jax.lax.digamma": "pscdsl.special.digamma",
    "jax.lax.dynamic_update_slice": "pscdsl.dynamic_update",
    "jax.lax.eq": "numpy.equal",
    "jax.lax.erf": "pscdsl.special.erf",
    "jax.lax.erf_inv": "pscdsl.special.erfinv",
    "jax.lax.erfc": "pscdsl.special.erfc",
    "jax.lax.ge": "numpy.greater_equal",
    "jax.lax.gt": "numpy.greater",
    "jax.lax.is_finite": "numpy.isfinite",
    "jax.lax.le": "numpy.less_equal",
    "jax.lax.lgamma": "pscdsl.special.gammaln",
    "jax.lax.logistic": "pscdsl.special.expit",
    "jax.lax.lt": "numpy.less",
    "jax.lax.max": "numpy.maximum",
    "jax.lax.min": "numpy.minimum",
    "jax.lax.mul": "numpy.multiply",
    "jax.lax.ne": "numpy.not_equal",
    "jax.lax.neg": "numpy.negative",
    "jax.lax.pow": "numpy.power",
    "jax.lax.rem": "numpy.fmod",
    "jax.lax.rev": "numpy.flip",
    "jax.lax.select": "numpy.where",
    "jax.lax.sub": "numpy.subtract",
    "jax.nn.gelu": "pscdsl.stdlib.activations.gelu_tanh",
    "jax.nn.hard_swish": "pscdsl.stdlib.activations.hard_silu",
    "jax.nn.logsumexp": "pscdsl.special.logsumexp",
    "jax.nn.tanh": "numpy.tanh",
    "jax.random.PRNGKey": "pscdsl.random.key",
    "jax.remat": "pscdsl.checkpoint",
    "jax.tree_map": "pscdsl.tree.map",
    "jax.tree_util.tree_leaves": "pscdsl.tree.leaves",
    "jax.tree_util.tree_map": "pscdsl.tree.map",
    "jax.tree_util.tree_reduce": "pscdsl.tree.reduce",
    "scipy.integrate.trapezoid": "numpy.trapezoid",
    "scipy.signal.fftconvolve": "pscdsl.stdlib.signals.convolve_fft",
    "scipy.signal.hilbert": "pscdsl.stdlib.signals.analytic",
    "torch.cat": "numpy.concatenate",
    "torch.clamp": "numpy.clip",
    "torch.concat": "numpy.concatenate",
    "torch.div": "numpy.divide",
    "torch.eq": "numpy.equal",
    "torch.erf": "pscdsl.special.erf",
    "torch.erfc": "pscdsl.special.erfc",
    "torch.ge": "numpy.greater_equal",
    "torch.gt": "numpy.greater",
    "torch.le": "numpy.less_equal",
    "torch.lgamma": "pscdsl.special.gammaln",
    "torch.lt": "numpy.less",
    "torch.mm": "numpy.matmul",
    "torch.mv": "numpy.matmul",
    "torch.bmm": "numpy.matmul",
    "torch.mul": "numpy.multiply",
    "torch.ne": "numpy.not_equal",
    "torch.neg": "numpy.negative",
    "torch.permute": "numpy.transpose",
    "torch.pow": "numpy.power",
    "torch.relu": "pscdsl.stdlib.activations.relu",
    "torch.sigmoid": "pscdsl.special.expit",
    "torch.sub": "numpy.subtract",
    "torch.transpose": "numpy.swapaxes",
    "torch.unsqueeze": "numpy.expand_dims",
    "torch.nn.functional.relu": "pscdsl.stdlib.activations.relu",
    "torch.nn.functional.silu": "pscdsl.stdlib.activations.silu",
    "torch.nn.functional.softplus": "pscdsl.stdlib.activations.softplus",
    **{f"jax.lax.{name}": f"numpy.{name}" for name in _LAX},
    **{f"torch.{name}": f"numpy.{name}" for name in _TORCH},
    **{f"scipy.linalg.{name}": f"numpy.linalg.{name}" for name in _LINALG},
    **{f"torch.linalg.{name}": f"numpy.linalg.{name}" for name in _TORCH_LINALG},
    **{
        f"jax.nn.{name}": f"pscdsl.stdlib.activations.{name.replace('soft_sign', 'softsign')}"
        for name in _ACTIVATIONS
    },
    **{f"scipy.stats.{name}": f"pscdsl.stdlib.{here}" for name, here in _DISTRIBUTIONS.items()},
}

ALONG_AXIS: Final = {
    "jax.nn.log_softmax": "pscdsl.special.log_softmax",
    "jax.nn.softmax": "pscdsl.special.softmax",
}
"""Replacements for functions with an axis, where `RENAMED` has a function of the last one."""

_COMPILED: Final = "leave it out: a kernel is compiled as a whole"
_NO_FILTER: Final = "`lfilter(b, a, x).y` of `pscdsl.stdlib.signals`, `a` and `b` of equal length"
_INITIALIZED: Final = "`{name}(key, shape)` of `pscdsl.stdlib.initializers`"

COMPILERS: Final = (
    "jax.jit",
    "numba.cuda.jit",
    "numba.jit",
    "numba.njit",
    "torch.compile",
    "torch.jit.script",
)
"""Decorators that compile a function, which a kernel does as a whole."""

_IN_WORDS: Final = {
    **dict.fromkeys(COMPILERS, _COMPILED),
    **dict.fromkeys(
        ("jax.block_until_ready", "jax.device_get", "jax.device_put"),
        "leave it out: a kernel runs on one device",
    ),
    "jax.lax.argmax": "`np.argmax(x, axis=axis)`",
    "jax.lax.argmin": "`np.argmin(x, axis=axis)`",
    "jax.lax.broadcast": "`np.broadcast_to(x, (*sizes, *x.shape))`",
    "jax.lax.broadcast_in_dim": "`np.broadcast_to(x, shape)`, after `np.expand_dims`",
    "jax.lax.conv": "`psc.conv(x, kernel, strides, padding)`, channels behind the batch",
    "jax.lax.conv_general_dilated": (
        "`psc.conv(x, kernel, strides, padding)`, channels behind the batch"
    ),
    "jax.lax.reduce_window": "`psc.reduce_window`, `psc.max_pool` or `psc.avg_pool`",
    "jax.lax.clamp": "`np.clip(x, low, high)`",
    "jax.lax.convert_element_type": "`x.astype(dtype)`",
    "jax.lax.cumsum": "`np.cumsum(x, axis=axis)`",
    "jax.lax.cumprod": "`np.cumprod(x, axis=axis)`",
    "jax.lax.cummax": "`np.maximum.accumulate(x, axis=axis)`",
    "jax.lax.cummin": "`np.minimum.accumulate(x, axis=axis)`",
    "jax.lax.div": "`x / y` of floats, `x // y` of integers that are not negative",
    "jax.lax.dot_general": "`x @ y`, or `np.einsum` with a letter for each axis",
    "jax.lax.dynamic_index_in_dim": (
        "`x[i]`, or `np.take(x, i, axis)`; an index out of range is clamped"
    ),
    "jax.lax.dynamic_slice_in_dim": (
        "`psc.dynamic_slice(x, starts, sizes)`, with a start and a size for each axis; "
        "a negative start is clamped to 0, where jax counts it from the end"
    ),
    "jax.lax.dynamic_update_index_in_dim": (
        "`psc.update(x, i, value)`; an index out of range is clamped"
    ),
    "jax.lax.dynamic_update_slice_in_dim": (
        "`psc.dynamic_update(x, update, starts)`, with a start for each axis; "
        "a negative start is clamped to 0, where jax counts it from the end"
    ),
    "jax.lax.gather": "`x[indices]`",
    "jax.lax.index_in_dim": "`x[i]`, or `np.take(x, i, axis)`",
    "jax.lax.integer_pow": "`x**n`",
    "jax.lax.iota": "`np.arange(n, dtype=dtype)`",
    "jax.lax.pad": "`np.pad(x, widths)`",
    "jax.lax.reduce": "`np.sum`, `np.max`, or `psc.map_reduce`",
    "jax.lax.round": (
        "`np.round(x)` rounds halves to even numbers, where `jax.lax.round` rounds them away from 0"
    ),
    "jax.lax.rsqrt": "`1 / np.sqrt(x)`",
    "jax.lax.slice": "`x[start:stop]`",
    "jax.lax.slice_in_dim": "`x[start:stop]`",
    "jax.lax.sort": "`np.sort(x, axis=axis)`",
    "jax.named_call": "`psc.scope(name)` names a part of a kernel",
    "jax.named_scope": "`psc.scope(name)` names a part of a kernel",
    **{
        f"jax.nn.initializers.{name}": _INITIALIZED.format(name=name)
        for name in (
            "glorot_normal glorot_uniform he_normal he_uniform lecun_normal lecun_uniform"
        ).split()
    },
    "jax.nn.one_hot": "`(x[:, None] == np.arange(n)).astype(np.float32)`",
    "jax.ops.segment_sum": (
        '`psc.update(np.zeros(n, x.dtype), ids, x, combine="add")`, which clamps `ids` that are '
        "out of range, where jax leaves them out"
    ),
    "jax.pmap": "`psc.vmap` maps over an axis",
    "jax.random.multivariate_normal": (
        "`mean + np.linalg.cholesky(covariance) @ psc.random.normal(key, mean.shape)`"
    ),
    "numpy.fromfunction": "`i, j = np.indices(shape)`, and the function of `i` and `j`",
    "jax.numpy.vectorize": "functions work on whole arrays; `psc.vmap` maps over an axis",
    "numpy.vectorize": "functions work on whole arrays; `psc.map` loops over the first axis",
    "scipy.integrate.odeint": "`dormand_prince` or `rk4` of `pscdsl.stdlib.ode`",
    "scipy.integrate.quad": (
        "nothing here integrates adaptively: `np.trapezoid(f(x), x)` over enough points, or "
        "`weights @ f(nodes)` with those of `np.polynomial.legendre.leggauss`, made outside"
    ),
    "scipy.integrate.solve_ivp": "`dormand_prince` or `rk4` of `pscdsl.stdlib.ode`",
    "scipy.interpolate.interp1d": "`np.interp(x, xp, fp)` interpolates linearly",
    "scipy.linalg.block_diag": "`np.block([[a, zeros], [zeros, b]])`",
    "scipy.linalg.cho_factor": "`np.linalg.cholesky(a)`, which is the lower factor",
    "scipy.linalg.cho_solve": (
        "`psc.triangular_solve(c, b, lower=True)`, "
        "then `psc.triangular_solve(c, y, lower=True, transpose=True)`"
    ),
    "scipy.linalg.cholesky": (
        "`np.linalg.cholesky(a)`, which is the lower factor, as `lower=True` gives it"
    ),
    "scipy.linalg.eig": "`np.linalg.eig(a)`, or `np.linalg.eigh(a)` where `a` is symmetric",
    "scipy.linalg.eigvals": "`np.linalg.eigvals(a)`, or `np.linalg.eigvalsh(a)` of a symmetric one",
    "scipy.linalg.qr": '`np.linalg.qr(a, mode="complete")`, or `np.linalg.qr(a)` for the thin one',
    "scipy.linalg.solve_triangular": (
        "`psc.triangular_solve(a, b, lower=…)`, with `transpose=True` for `trans`"
    ),
    "scipy.optimize.bisect": "`bisect(f, low, high).x` of `pscdsl.stdlib.roots`",
    "scipy.optimize.brentq": "`brent(f, low, high).x` of `pscdsl.stdlib.roots`",
    "scipy.optimize.fixed_point": "`fixed_point` of `pscdsl.stdlib.roots`",
    "scipy.optimize.fsolve": "`newton_system` of `pscdsl.stdlib.roots`",
    "scipy.optimize.minimize": (
        "`lbfgs` of `pscdsl.stdlib.lbfgs`, `newton_cg` of `pscdsl.stdlib.newton`, or `nelder_mead` "
        "of `pscdsl.stdlib.minimisation`"
    ),
    "scipy.optimize.minimize_scalar": "`golden_section` of `pscdsl.stdlib.minimisation`",
    "scipy.optimize.newton": "`newton` of `pscdsl.stdlib.roots`",
    "scipy.optimize.root": "`newton_system` of `pscdsl.stdlib.roots`",
    "scipy.optimize.root_scalar": "`brent(f, low, high).x` of `pscdsl.stdlib.roots`",
    "scipy.signal.convolve": "`np.convolve(x, v)`, or `convolve_fft` of `pscdsl.stdlib.signals`",
    "scipy.signal.correlate": '`np.correlate(x, v, mode="full")`',
    "scipy.signal.lfilter": _NO_FILTER,
    **{
        f"scipy.signal.{name}": f"`{name}` of `pscdsl.stdlib.signals`"
        for name in "istft periodogram resample sosfilt stft welch".split()
    },
    "scipy.sparse.linalg.cg": "`conjugate_gradients` of `pscdsl.stdlib.solvers`",
    "scipy.sparse.linalg.eigsh": "`eigenpairs` of `pscdsl.stdlib.solvers`",
    "scipy.sparse.linalg.gmres": "`gmres` of `pscdsl.stdlib.solvers`",
    "scipy.spatial.distance.cdist": "`np.sqrt(np.sum((x[:, None] - y) ** 2, axis=-1))`",
    "scipy.stats.expon.cdf": "`exponential_cdf(x, rate)` of `pscdsl.stdlib.distributions`",
    "scipy.stats.expon.logpdf": (
        "`exponential_log_density(x, rate)` of `pscdsl.stdlib.distributions`"
    ),
    "scipy.stats.gamma.logpdf": "`gamma_log_density` of `pscdsl.stdlib.distributions`",
    "scipy.stats.gamma.cdf": "`gamma_cdf` of `pscdsl.stdlib.distributions`",
    "scipy.stats.multivariate_normal.logpdf": (
        "`multivariate_normal_log_density` of `pscdsl.stdlib.multivariate_distributions`"
    ),
    "scipy.stats.norm.logcdf": "`psc.special.log_ndtr((x - mean) / deviation)`",
    "scipy.stats.norm.pdf": (
        "`np.exp(normal_log_density(x, mean, deviation))`, a function of "
        "`pscdsl.stdlib.distributions`"
    ),
    "scipy.stats.norm.ppf": "`mean + deviation * psc.special.ndtri(p)`",
    "scipy.stats.norm.rvs": "`psc.random.normal(key, shape)`",
    "scipy.stats.norm.sf": "`psc.special.ndtr((mean - x) / deviation)`",
    "scipy.stats.uniform.logpdf": "`uniform_log_density` of `pscdsl.stdlib.distributions`",
    "numpy.lib.stride_tricks.sliding_window_view": (
        "`x[np.arange(x.shape[0] - k + 1)[:, None] + np.arange(k)]` has the windows of `k` items"
    ),
    "torch.arange": "`np.arange(n)`",
    "torch.norm": "`np.linalg.norm(x)`",
    "torch.no_grad": "leave it out, or `psc.stop_gradient(x)`",
    "torch.nn.functional.softmax": "`psc.special.softmax(x, axis=axis)`",
    "torch.nn.functional.log_softmax": "`psc.special.log_softmax(x, axis=axis)`",
    "torch.log_softmax": "`psc.special.log_softmax(x, axis=axis)`",
    "torch.logsumexp": "`psc.special.logsumexp(x, axis=axis)`",
    "torch.max": "`np.max(x)`; `np.max(x, axis)` and `np.argmax(x, axis)` along an axis",
    "torch.gather": "`np.take_along_axis(x, indices, axis)`",
    "torch.meshgrid": '`np.meshgrid(x, y, indexing="ij")`',
    "torch.min": "`np.min(x)`; `np.min(x, axis)` and `np.argmin(x, axis)` along an axis",
    "torch.ones": "`np.ones(shape)`",
    "torch.rand": "`psc.random.uniform(key, shape)`",
    "torch.randn": "`psc.random.normal(key, shape)`",
    "torch.round": "`np.round(x)`",
    "torch.sort": "`np.sort(x, axis)`, and `np.argsort(x, axis)` for the indices",
    "torch.softmax": "`psc.special.softmax(x, axis=axis)`",
    "torch.std": "`np.std(x, ddof=1)`",
    "torch.tensor": "`np.array(values)`",
    "torch.topk": "`psc.top_k(x, k)`",
    "torch.var": "`np.var(x, ddof=1)`",
    "torch.zeros": "`np.zeros(shape)`",
}
_SLICED: Final = "a negative start is clamped to 0, where jax counts it from the end"
_TAKEN: Final = "an index out of range is clamped, where jax gives NaN"
_OTHER_NUMBERS: Final = "it draws other numbers from the same key than jax"
DIFFERS: Final = {
    **dict.fromkeys(("jax.lax.dynamic_slice", "jax.lax.dynamic_update_slice"), _SLICED),
    **dict.fromkeys(("jax.numpy.take", "jax.numpy.take_along_axis"), _TAKEN),
    **{
        f"jax.random.{name}": _OTHER_NUMBERS
        for name in (
            "beta choice dirichlet gamma loggamma permutation poisson randint truncated_normal"
        ).split()
    },
}
"""The differences of an equivalent function."""
for _table in (RENAMED, _IN_WORDS):
    _scipy = [(name, text) for name, text in _table.items() if name.startswith("scipy.")]
    _table.update({f"jax.{name}": text for name, text in _scipy})


def equivalent(name: str) -> str:
    """Return the qualified name of the equivalent function here; empty if none is known."""
    module, _, last = name.rpartition(".")
    if name in _OTHER_ARGUMENTS:
        return ""
    here = RENAMED.get(name) or f"{_SAME_NAMES.get(module, '')}.{last}"
    if here in MEANINGS or here.startswith("pscdsl.stdlib."):
        return here
    return ""


def written(name: str) -> str:
    """Return a qualified name as programs write it: `np.exp`, `psc.scan`."""
    module, _, rest = name.partition(".")
    short = {"numpy": "np", "pscdsl": "psc"}.get(module, module)
    return f"{short}.{rest}"


_NO_COUNTERPART: Final = (
    "it has no counterpart here: call it outside and pass its result as an argument"
)


def instead_of(name: str) -> str:
    """Return the replacement for a function of another library, in words; empty if unknown."""
    here = equivalent(name)
    if here.startswith("pscdsl.stdlib."):
        module, _, function = here.rpartition(".")
        other = ALONG_AXIS.get(name)
        more = f", or `{written(other)}(x, axis=axis)`" if other else ""
        return f"`{function}` of `{module}`{more}"
    if not here:
        library = name.partition(".")[0]
        known = library in _LIBRARIES
        return _IN_WORDS.get(name, _NO_COUNTERPART if known else "")
    differs = DIFFERS.get(name)
    return f"`{written(here)}` is its name here" + (f"; {differs}" if differs else "")


EFFECTS: dict[str, str] = {
    "builtins.print": '`psc.debug.print("{x}", x=x)` prints when the kernel runs',
    "builtins.open": "read or write files outside, and pass arrays",
    "logging": "log outside, from what the kernel returns",
    "warnings": "warn outside",
    "subprocess": "run processes outside",
    "shutil": "work with files outside",
    "socket": "talk to the network outside",
    "requests": "talk to the network outside",
    "urllib": "talk to the network outside",
    "numpy.save": "save what the kernel returns",
    "numpy.savez": "save what the kernel returns",
    "numpy.savetxt": "save what the kernel returns",
    "numpy.set_printoptions": "set them outside",
    "time.sleep": "wait outside",
    "builtins.breakpoint": "`kernel.interpret(…, breakpoints=[line])` stops in a line of a kernel",
    "builtins.exit": "leave outside, after the call",
    "builtins.quit": "leave outside, after the call",
    "sys.stdout": "return the value and print it outside",
    "sys.stderr": "return the value and print it outside",
    "sys.exit": "",
    "jax.debug": "`psc.debug.print` prints when the kernel runs",
    "jax.experimental.checkify": '`psc.check(condition, "text")` checks when the kernel runs',
    "tqdm": "`psc.progress(i, n)` draws a bar for a loop in a kernel",
    **dict.fromkeys(
        "threading multiprocessing concurrent asyncio queue sched select selectors _thread".split(),
        "run tasks side by side outside",
    ),
    **dict.fromkeys(
        "http smtplib ftplib ssl webbrowser syslog".split(), "talk to the network outside"
    ),
    **dict.fromkeys(
        "tempfile sqlite3 dbm shelve csv zipfile tarfile".split(), "work with files outside"
    ),
    **dict.fromkeys("pickle.dump json.dump marshal.dump".split(), "write files outside"),
    **dict.fromkeys("atexit signal gc faulthandler tracemalloc".split(), "set it up outside"),
    **dict.fromkeys("pdb traceback".split(), "debug outside, with what the kernel returns"),
    "decimal.setcontext": "set it outside",
    "locale.setlocale": "set it outside",
    "builtins.help": "read it outside",
}
INPUTS: dict[str, tuple[str, str]] = {
    "builtins.input": ("the keyboard", "pass it as an argument"),
    "time": ("the clock", "read it outside and pass it as an argument"),
    "datetime": ("the clock", "read it outside and pass it as an argument"),
    "os": ("the operating system", "read it outside and pass it as an argument"),
    "sys": ("the interpreter", "read it outside and pass it as an argument"),
    "pathlib": ("the file system", "read files outside and pass arrays"),
    "io": ("a file", "read files outside and pass arrays"),
    "numpy.load": ("a file", "load it outside and pass it as an argument"),
    "numpy.loadtxt": ("a file", "load it outside and pass it as an argument"),
    "numpy.genfromtxt": ("a file", "load it outside and pass it as an argument"),
    "numpy.fromfile": ("a file", "load it outside and pass it as an argument"),
    "numpy.empty_like": ("memory", "use `np.zeros_like`"),
    "uuid": ("the clock and the network", "pass it as an argument"),
    "platform": ("the machine", "pass it as an argument"),
    "getpass": ("the environment", "pass it as an argument"),
    **dict.fromkeys(
        ("builtins.__name__", "builtins.__file__", "builtins.__package__", "builtins.__spec__"),
        ("how the module was loaded", "pass what depends on it as an argument"),
    ),
    "builtins.__debug__": ("how Python was started", "pass it as an argument"),
    "locale": ("the locale", "pass what depends on it as an argument"),
    "contextvars": ("the context", "read it outside and pass it as an argument"),
    "decimal": ("the context", "compute it outside and pass it as an argument"),
    "inspect": ("the stack or the source", "pass what is needed as an argument"),
    "weakref": ("what is still alive", "pass it as an argument"),
    "importlib": ("the modules that are installed", "use an `import` statement"),
    "pkgutil": ("the modules that are installed", "use an `import` statement"),
    **dict.fromkeys(
        "glob fileinput linecache pickle.load json.load marshal.load configparser".split(),
        ("a file", "read it outside and pass it as an argument"),
    ),
    **dict.fromkeys(
        "resource pwd grp zoneinfo readline".split(), ("the machine", "pass it as an argument")
    ),
    "itertools.count": ("an iterator's state", "use `range`, or pass a number"),
    "itertools.cycle": ("an iterator's state", "use a tuple and `%`"),
    "builtins.id": ("an address in memory", "pass an explicit number"),
    "builtins.hash": ("a per-process seed", "pass an explicit number"),
    "builtins.globals": ("all global names", "name what is needed"),
    "builtins.locals": ("all local names", "name what is needed"),
    "builtins.vars": ("all names of an object", "name what is needed"),
}
CHANGES: dict[str, str] = {
    "builtins.setattr": "make a changed copy: `p.replace(name=…)` of a record",
    "builtins.delattr": "make a copy without it",
    "numpy.put": "x = psc.update(x, index, value)",
    "numpy.put_along_axis": "x = psc.update(x, index, value)",
    "numpy.place": "x = np.where(mask, value, x)",
    "numpy.putmask": "x = np.where(mask, value, x)",
    "numpy.copyto": "x = y, or x = np.where(mask, y, x)",
    "numpy.fill_diagonal": "x = np.where(np.eye(n, dtype=bool), value, x)",
}
"""Functions that change an argument in place."""
BUILTINS: dict[str, str] = {
    "exec": "write the code itself",
    "eval": "write the expression itself",
    "compile": "write the code itself",
    "__import__": "use an `import` statement",
    "__lazy_import__": "use an `import` statement",
    "hasattr": "what a value is, is known while checking: leave it out, or use `isinstance`",
    "super": "call the method of the class by its name: `Base.method(self)`",
}
RANDOM = ("random", "numpy.random", "secrets")
_UNIFORM = "psc.random.uniform(key, shape)"
_RANDINT = "psc.random.randint(key, shape, low, high)"
_PERMUTATION = "psc.random.permutation(key, x)"
_NORMAL = "psc.random.normal(key, shape)"
DRAWS = {
    **dict.fromkeys(("rand", "random", "random_sample", "ranf", "sample"), _UNIFORM),
    "uniform": "psc.random.uniform(key, shape, minval=low, maxval=high)",
    **dict.fromkeys(("randn", "standard_normal"), _NORMAL),
    "normal": f"mean + std * {_NORMAL}",
    **dict.fromkeys(("randint", "integers"), _RANDINT),
    "random_integers": "psc.random.randint(key, shape, low, high + 1)",
    **dict.fromkeys(("choice", "choices"), "psc.random.choice(key, x, shape)"),
    "permutation": _PERMUTATION,
    "shuffle": f"x = {_PERMUTATION}",
    "standard_exponential": "psc.random.exponential(key, shape)",
    "exponential": "scale * psc.random.exponential(key, shape)",
    "laplace": "loc + scale * psc.random.laplace(key, shape)",
    "logistic": "loc + scale * psc.random.logistic(key, shape)",
    "gumbel": "loc + scale * psc.random.gumbel(key, shape)",
    "standard_gamma": "psc.random.gamma(key, a, shape)",
    "gamma": "scale * psc.random.gamma(key, a, shape)",
    "beta": "psc.random.beta(key, a, b, shape)",
    "dirichlet": "psc.random.dirichlet(key, alpha, shape)",
    "poisson": "psc.random.poisson(key, lam, shape)",
    "random.random": "psc.random.uniform(key)",
    "random.uniform": "psc.random.uniform(key, minval=low, maxval=high)",
    "random.randint": "psc.random.randint(key, (), low, high + 1)",
    "random.randrange": "psc.random.randint(key, (), low, high)",
    "random.gauss": "mean + std * psc.random.normal(key)",
    "random.normalvariate": "mean + std * psc.random.normal(key)",
    "random.sample": "psc.random.choice(key, x, shape, replace=False)",
    "random.choice": "psc.random.choice(key, x)",
    "random.expovariate": "psc.random.exponential(key) / rate",
    "random.betavariate": "psc.random.beta(key, a, b)",
    "random.gammavariate": "scale * psc.random.gamma(key, a)",
}
"""Functions of `random` and `numpy.random`, and a draw from the same distribution."""
LIST_METHODS = {
    "append": "{x} = {x} + [item], or a comprehension",
    "extend": "{x} = {x} + items",
    "insert": "{x} = {x}[:i] + [item] + {x}[i:]",
    "pop": "{x}[-1], and {x}[:-1] for the rest",
    "remove": "a comprehension with `if`",
    "clear": "{x} = []",
    "sort": "sorted({x})",
    "reverse": "{x}[::-1]",
}
DICT_METHODS = {
    "update": "{{**{x}, **other}}",
    "setdefault": "{{**{x}, key: value}}",
    "pop": "a comprehension without the key",
    "popitem": "a comprehension without the key",
    "clear": "{{}}",
}

SET_METHODS = frozenset(
    "add discard remove pop clear update intersection_update difference_update "
    "symmetric_difference_update".split()
)


def _lookup(table: Mapping[str, T], name: str) -> T | None:
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        found = table.get(".".join(parts[:count]))
        if found is not None:
            return found
    return None


def external_call(name: str) -> Diagnostic:
    """Return the problem with calling a function of this qualified name."""
    shown = name.removeprefix("builtins.")
    if any(name == each or name.startswith(each + ".") for each in RANDOM):
        draw = DRAWS.get(name) or DRAWS.get(name.rpartition(".")[2], "")
        return RandomState(function=shown, instead=draw)
    effect = _lookup(EFFECTS, name)
    if effect is not None:
        return SideEffect(function=shown, rewrite=effect)
    hidden = _lookup(INPUTS, name)
    if hidden is not None:
        return HiddenInput(function=shown, what=hidden[0], rewrite=hidden[1])
    change = CHANGES.get(name)
    if change is not None:
        return Mutation(what=f"`{shown}`", rewrite=change)
    if name.startswith("builtins."):
        return Unsupported(what=f"`{shown}`", rewrite=BUILTINS.get(shown, ""))
    if name.startswith("numpy.") and name != "numpy.frompyfunc":
        return NotSupported(what=f"`{shown}`", instead=instead_of(name))
    here = equivalent(name)
    return UnknownFunction(function=shown, here=here, instead=instead_of(name))


def external_use(value: External) -> Diagnostic:
    """Return the problem with calling an unknown value."""
    return external_value(value) if value.why else external_call(value.name)


def external_value(value: External) -> Diagnostic:
    """Return the problem with using an unknown value."""
    if value.why:
        first = value.why[0]
        return first.replaced(span=NOWHERE, labels=(Label(first.span, f"`{value.name}`"),))
    found = external_call(value.name)
    if not isinstance(found, UnknownFunction):
        return found
    return UnknownValue(name=value.name, here=found.here, instead=found.instead)


def may_not_exist(value: External) -> bool:
    """Return whether a module may lack an attribute; Python's and NumPy's are looked up."""
    root, *path = value.name.split(".")
    if not value.library or value.why or not path:
        return False
    if root not in sys.stdlib_module_names | {"numpy"} or root not in sys.modules:
        return True
    owner: Any = sys.modules[root]
    for number, name in enumerate(path):
        module = sys.modules.get(".".join([root, *path[: number + 1]]))
        owner = getattr(owner, name, module)
        if owner is None:
            return True
    return False


def library_call(name: str, kwargs: Mapping[str, AnyValue]) -> Diagnostic | None:
    """Return the problem with a call of a known function, by its keywords."""
    if kwargs.get("out") is not None:
        return Mutation(what=f"`out=` of `{name}`", rewrite="use the result")
    return None


def ufunc_at(name: str) -> Diagnostic:
    """Return the problem with `np.add.at`."""
    combine = name.removeprefix("numpy.")
    rewrite = f'x = psc.update(x, index, value, combine="{combine}")'
    return Mutation(what=f"`{name}.at`", rewrite=rewrite)


def is_refused(name: str) -> bool:
    """Return whether an attribute of an array changes it or leaves the program."""
    return name in methods.IN_PLACE or name in methods.LEAVES_PROGRAM


def array_attribute(name: str, owner: str) -> Diagnostic:
    """Return the problem with an attribute that changes an array or leaves the program."""
    if name in methods.IN_PLACE:
        rewrite = methods.IN_PLACE[name]
        return Mutation(what=f"`{owner}.{name}`", rewrite=rewrite.replace("{x}", owner))
    rewrite = methods.LEAVES_PROGRAM[name]
    return ArrayLeavesProgram(function=f".{name}", rewrite=rewrite.replace("{x}", owner))


def static_attribute(value: AnyValue, name: str, owner: str = "") -> Diagnostic | None:
    """Return the problem with an attribute of a list, set or dict; `owner` is its text."""
    match value:
        case list() if name in LIST_METHODS:
            return made_anew(f"`list.{name}`", LIST_METHODS[name].format(x=owner or "items"))
        case set() if name in SET_METHODS:
            return made_anew(f"`set.{name}`", "a set comprehension, or `s | {item}`")
        case dict() if name in DICT_METHODS:
            return made_anew(f"`dict.{name}`", DICT_METHODS[name].format(x=owner or "d"))
        case _:
            return None


def made_anew(what: str, rewrite: str) -> Diagnostic:
    """Return the refusal to change a list, set or dict, which all its names would show."""
    return Mutation(what=what, rewrite=f"{rewrite}; another name of it keeps what it has")


def index_text(text: str, node: ast.expr) -> str:
    """Return the text of an index as an argument of `psc.update`."""
    if any(isinstance(inner, ast.Slice) for inner in ast.walk(node)):
        return f"np.s_[{text}]"
    return f"({text})" if isinstance(node, ast.Tuple) else text


# Closed values, which are CPython's in all their parts, and mutable values.


# Values that can be changed in place, and how.


class MutableKind(Enum):
    """The ways in which a value can be changed in place."""

    ARRAY = auto()
    """An array, and through each of its views."""
    FLAT = auto()
    """A list, dict or set of immutable values."""
    DEEP = auto()
    """A value that holds others that can be changed."""


def kind_of(value: AnyValue) -> MutableKind | None:
    """Return the way in which a value can be changed; None if it is immutable."""
    if is_known_array(value):
        if is_frozen(value):
            return None
        plain = value.__class__ is np.ndarray and not value.dtype.hasobject
        return MutableKind.ARRAY if plain else MutableKind.DEEP
    if isinstance(value, Once) or any(map(kind_of, parts(value))):
        return MutableKind.DEEP
    return MutableKind.FLAT if isinstance(value, list | dict | set) else None


def is_mutable(value: AnyValue) -> bool:
    """Return whether a value, or something in it, can be changed in place."""
    return kind_of(value) is not None


def holds_arrays(value: Binding) -> bool:
    """Return whether a value is or holds an array that is computed."""
    return (is_traced(value) and not isinstance(value, Weak)) or any(
        map(holds_arrays, parts(value))
    )


def iterator_in(value: Place) -> Once | None:
    """Return the iterator that a value is or holds."""
    if isinstance(value, Once):
        return value
    return next((once for part in parts(value) if (once := iterator_in(part)) is not None), None)


def parts(value: Binding) -> Sequence[Place]:
    """Return the values that a value holds."""
    if isinstance(value, Simple):
        return ()
    match value:
        case tuple() | list() | dict() | RecordValue() | MapValue() | VectorValue():
            return tree_parts(value) or ()
        case Applicable() | Open():
            return value.holds()
        case EnumMember():
            return [value.value]
        case Enum():
            return [value._value_]
        case set() | frozenset():
            return ()
        case _:
            assert_never(value)


def has_keywords(value: Place) -> bool:
    """Return whether a value is or holds a partial function with keywords, which are a dict."""
    if isinstance(value, Partial) and value.kwargs:
        return True
    return any(has_keywords(part) for part in parts(value))


# Closed values, which are CPython's in all their parts, and CPython's results for them.
#
# A static value is *closed* if it is a number, a string, None, a range, a slice, or a container of
# such: then an operation on it is done by CPython itself, on the very objects.  Everything else (a
# size, a condition on sizes, an array, a record, a function) is *open*: an operation on it has an
# exact meaning that is written down, or is refused.  Where CPython itself is not determined (the
# order of a set), closed values are refused as well.


ATOMS: Final[tuple[type, ...]] = (
    *(bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range),
)
"""Types of closed values without parts."""
MAX_RANGE = 10_000
"""No function of Python's walks through a longer range."""


def range_length(value: range) -> int:
    """Return the number of items of a range, also where `len` cannot."""
    away = value.step - (1 if value.step > 0 else -1)
    return max(0, (value.stop - value.start + away) // value.step)


def is_set(value: Binding) -> TypeIs[set[Any] | frozenset[Any]]:
    """Return whether this is a set, whose order is unspecified."""
    return isinstance(value, set | frozenset)


_CONTAINERS: Final[frozenset[type]] = frozenset((tuple, list, set, frozenset, dict, slice))


def _parts(value: Place) -> Iterable[Place] | None:
    """Return the parts of a container; None if it is no container of Python's."""
    if value.__class__ not in _CONTAINERS:
        return None
    if is_dict(value):
        return [*value, *value.values()]
    if is_slice(value):
        return value.start, value.stop, value.step
    return value if is_sequence(value) or is_set(value) else None


def _walk(value: Place) -> Iterator[Place]:
    """Yield a value and all that it holds."""
    yield value
    for each in _parts(value) or ():
        yield from _walk(each)


def is_closed(value: Place) -> bool:
    """Return whether a value and all its parts are CPython's."""
    if value.__class__ in ATOMS:
        return True
    parts = _parts(value)
    return parts is not None and all(map(is_closed, parts))


def first_open(values: Sequence[Place]) -> Place:
    """Return the first part of some values that is open; the first value if none is."""
    for value in values:
        for each in _walk(value):
            if each.__class__ not in ATOMS and _parts(each) is None:
                return each
    return values[0]


def refused(what: str, *values: Place) -> Failure:
    """Return the refusal of an operation on values that are open."""
    found = first_open(values)
    if isinstance(found, Poison):
        raise Poisoned
    if isinstance(found, External):
        return Failure(external_value(found))
    shown = f" of {describe(found)}" if len(values) == 1 else f", where {describe(found)} is given"
    return Failure(NotStatic(what=f"{what}{shown}"))


def require_closed(what: str, *values: Place) -> None:
    """Raise a Failure unless all values are closed."""
    if not all(map(is_closed, values)):
        raise refused(what, *values)


class Sets(Enum):
    """The dependence of a function's result on the order of a set."""

    DECIDE = "its result may depend on it"
    SORTED = "it does not, where the items have an order of their own"
    SUMMED = "it does not, where the items are integers"
    UNORDERED = "it never does"


def _require_determined(value: AnyValue, sets: Sets) -> None:
    """Raise a Failure if the order of a set decides a function's result."""
    if sets is Sets.UNORDERED:
        return
    if is_set(value) and sets is not Sets.DECIDE:
        kinds = {item.__class__ for item in value}
        numbers = {int, bool} if sets is Sets.SUMMED else {int, bool, float}
        texts = kinds == {str} and sets is Sets.SORTED
        if (texts or kinds <= numbers) and all(item == item for item in value):
            return
    if any(is_set(each) for each in _walk(value)):
        raise Failure(SetOrder())


def by_python(
    what: str,
    function: Callable[..., T],
    args: Iterable[Place],
    kwargs: Mapping[str, Any] | None = None,
    *,
    sets: Sets = Sets.DECIDE,
    walks: bool = True,
) -> T:
    """Return CPython's result for closed arguments; a Failure if it raises, or would take too long.

    `walks`: whether the function iterates over its arguments.
    """
    args, kwargs = tuple(args), dict(kwargs or {})
    for each in (*args, *kwargs.values()):
        if walks and isinstance(each, range) and range_length(each) > MAX_RANGE:
            raise Failure(TooLarge(what=f"a range of {range_length(each)} numbers"))
        _require_determined(each, sets)
    try:
        return function(*args, **kwargs)
    except (RecursionError, Failure):
        raise
    except Exception as error:  # whatever it is, the program would end there
        problem = f"fails: {error}" if str(error) else f"fails: {type(error).__name__}"
        raise Failure(BadArguments(function=what, problem=problem)) from None


BINARY: dict[str, Callable[..., AnyValue]] = {
    name: getattr(operator, function)
    for name, function in {
        "Add": "add",
        "Sub": "sub",
        "Mult": "mul",
        "Div": "truediv",
        "FloorDiv": "floordiv",
        "Mod": "mod",
        "Pow": "pow",
        "LShift": "lshift",
        "RShift": "rshift",
        "BitAnd": "and_",
        "BitOr": "or_",
        "BitXor": "xor",
        "MatMult": "matmul",
    }.items()
}
COMPARE: dict[str, Callable[..., AnyValue]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}
UNARY: dict[str, CPythonFunction] = {
    "USub": operator.neg,
    "UAdd": operator.pos,
    "Invert": operator.invert,
}


def require_bounded(name: str, left: Place, right: Place) -> None:
    """Raise a Failure if the result of an operator would be too large to work with."""
    if name in ("Pow", "LShift") and isinstance(left, int) and isinstance(right, int):
        grown = right * max(left.bit_length(), 1) if name == "Pow" else right + left.bit_length()
        if grown > MAX_BITS:
            raise Failure(TooLarge(what=f"an integer of more than {MAX_BITS} bits"))
    if name == "Mult":
        for sequence, count in ((left, right), (right, left)):
            if isinstance(sequence, str | bytes) or is_sequence(sequence):
                if isinstance(count, int) and len(sequence) * count > MAX_ITEMS:
                    raise Failure(TooLarge(what=f"a sequence of more than {MAX_ITEMS} items"))
    if name == "Mod" and isinstance(left, str | bytes):
        text = left if isinstance(left, str) else left.decode("latin-1")
        require_short("%", text, right if is_tuple(right) else (right,), {})


def text_of(what: str, function: Callable[..., str], value: AnyValue, *more: AnyValue) -> str:
    """Return the text of a closed value, by `str`, `repr`, `format` or `ascii`."""
    require_closed(f"the text{'' if what == 'str' else f' by `{what}`'}", value)
    found = by_python(what, function, (value, *more))
    return found


_CONVERSIONS: Final[Mapping[int, Callable[[AnyValue], str]]] = {115: str, 114: repr, 97: ascii}


def formatted(value: AnyValue, conversion: int, spec: str) -> str:
    """Return an f-string's text for a closed value."""
    require_narrow(spec)
    if conversion in _CONVERSIONS:
        value = by_python("an f-string", _CONVERSIONS[conversion], (value,))
    return by_python("an f-string", format, (value, spec))


def hashable(value: AnyValue) -> bool:
    """Return whether a closed value can be a key."""
    if is_tuple(value):
        return all(map(hashable, value))
    return not (is_dict(value) or isinstance(value, list | set) or is_slice(value))


# The meaning of `psc.constant`.


def constant(here: Builder, value: AnyValue) -> AnyValue:
    """Return an immutable value itself, and an immutable copy of any other."""
    if is_known_array(value):
        if value.dtype.hasobject:
            raise Failure(Unsupported(what="a constant array of Python objects", rewrite=""))
        return frozen(value)
    if is_set(value):
        return frozenset(value)
    if isinstance(value, Once):
        raise Failure(Unsupported(what=f"{value.kind} as a constant", rewrite="make it a tuple"))
    if is_dict(value) and not all(isinstance(key, str) for key in value):
        rewrite = "use strings as keys"
        raise Failure(Unsupported(what="a constant dict with other keys", rewrite=rewrite))
    found = tree_parts(value)
    if found is None:
        return value
    constants = [constant(here, part) for part in found]
    if is_sequence(value):
        return tuple(constants)
    if is_dict(value):
        return MapValue(dict(zip(value, constants, strict=True)))
    return with_tree_parts(value, constants)
