"""What functions of other libraries are called here: `jax.numpy.exp` is `np.exp`."""

from __future__ import annotations

from typing import Final

from pscdsl._src.language.meanings import MEANINGS

_SAME_NAMES: Final = {
    "jax": "pscdsl",
    "jax.lax": "pscdsl",
    "jax.numpy": "numpy",
    "jax.numpy.fft": "numpy.fft",
    "jax.numpy.linalg": "numpy.linalg",
    "jax.random": "pscdsl.random",
    "jax.scipy.special": "pscdsl.special",
    "jax.tree": "pscdsl.tree",
}
"""Modules whose functions are called the same here and take the same arguments, where there are."""

_OTHER_ARGUMENTS: Final = frozenset(
    ("jax.lax.conv", "jax.lax.conv_transpose", "jax.lax.reduce_window")
)

_LAX: Final = (
    "abs acos acosh asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor "
    "cbrt ceil concatenate conj cos cosh dot exp exp2 expand_dims expm1 floor imag log log1p "
    "nextafter real sign sin sinh sqrt square squeeze tan tanh transpose"
).split()
"""Functions of `jax.lax` that mean what NumPy's of the same name mean."""

_LINALG: Final = "det eigh eigvalsh inv lstsq norm pinv solve svd svdvals".split()
"""Functions of `scipy.linalg` of which the same holds, given arrays alone."""

_ACTIVATIONS: Final = (
    "celu elu glu hard_sigmoid hard_silu hard_tanh leaky_relu log_sigmoid log_softmax mish "
    "relu relu6 selu sigmoid silu soft_sign softmax softplus swish"
).split()

RENAMED: Final = {
    "jax.lax.add": "numpy.add",
    "jax.lax.bessel_i0e": "pscdsl.special.i0e",
    "jax.lax.bessel_i1e": "pscdsl.special.i1e",
    "jax.lax.digamma": "pscdsl.special.digamma",
    "jax.lax.dynamic_update_slice": "pscdsl.dynamic_update",
    "jax.lax.erf": "pscdsl.special.erf",
    "jax.lax.erf_inv": "pscdsl.special.erfinv",
    "jax.lax.erfc": "pscdsl.special.erfc",
    "jax.lax.is_finite": "numpy.isfinite",
    "jax.lax.lgamma": "pscdsl.special.gammaln",
    "jax.lax.logistic": "pscdsl.special.expit",
    "jax.lax.max": "numpy.maximum",
    "jax.lax.min": "numpy.minimum",
    "jax.lax.mul": "numpy.multiply",
    "jax.lax.neg": "numpy.negative",
    "jax.lax.pow": "numpy.power",
    "jax.lax.rem": "numpy.fmod",
    "jax.lax.select": "numpy.where",
    "jax.lax.sub": "numpy.subtract",
    "jax.nn.gelu": "pscdsl.stdlib.activations.gelu_tanh",
    "jax.nn.logsumexp": "pscdsl.special.logsumexp",
    "jax.random.PRNGKey": "pscdsl.random.key",
    "jax.tree_util.tree_leaves": "pscdsl.tree.leaves",
    "jax.tree_util.tree_map": "pscdsl.tree.map",
    "jax.tree_map": "pscdsl.tree.map",
    **{f"jax.lax.{name}": f"numpy.{name}" for name in _LAX},
    **{f"scipy.linalg.{name}": f"numpy.linalg.{name}" for name in _LINALG},
    **{
        f"jax.nn.{name}": f"pscdsl.stdlib.activations.{name.replace('soft_sign', 'softsign')}"
        for name in _ACTIVATIONS
    },
}

_IN_WORDS: Final = {
    "itertools.accumulate": "`np.cumsum` of an array, or a loop over a tuple",
    "itertools.chain": "join tuples: `(*a, *b)`",
    "itertools.combinations": "a comprehension with one `for` in another, and an `if`",
    "itertools.pairwise": "`zip(items, items[1:])`",
    "itertools.permutations": "a comprehension with one `for` in another, and an `if`",
    "itertools.product": "a comprehension with two loops: `[… for a in first for b in second]`",
    "itertools.repeat": "`range(n)`, or `[item] * n`",
    "itertools.starmap": "a comprehension: `[f(*each) for each in items]`",
    "jax.jit": "leave it out: a kernel is compiled as a whole",
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
    "jax.lax.integer_pow": "`x**n`",
    "jax.lax.iota": "`np.arange(n, dtype=dtype)`",
    "jax.lax.rsqrt": "`1 / np.sqrt(x)`",
    "jax.lax.sort": "`np.sort(x, axis=axis)`",
    "jax.nn.one_hot": "`(x[:, None] == np.arange(n)).astype(np.float32)`",
    "jax.ops.segment_sum": '`psc.update(np.zeros(n, x.dtype), ids, x, combine="add")`',
    "jax.pmap": "`psc.vmap` maps over an axis",
    "numpy.fromfunction": "`i, j = np.indices(shape)`, and the function of `i` and `j`",
    "numpy.mgrid": (
        '`np.indices((n, m))` of a slice from 0, or `np.meshgrid(…, indexing="ij")` of `np.arange`'
    ),
    "numpy.ndarray": "`np.zeros(shape, dtype)` makes an array",
    "numpy.ogrid": "`np.ix_(np.arange(n), np.arange(m))`",
    "numpy.piecewise": "`np.select([x < 0, x >= 0], [-x, x])`: of arrays, not of functions",
    "numpy.polyfit": "`np.linalg.lstsq(np.vander(x, degree + 1), y)[0]`",
    "numpy.vectorize": "functions work on whole arrays; `psc.map` loops over the first axis",
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
}
for _table in (RENAMED, _IN_WORDS):
    _scipy = [(name, text) for name, text in _table.items() if name.startswith("scipy.")]
    _table.update({f"jax.{name}": text for name, text in _scipy})


def equivalent(name: str) -> str:
    """The qualified name of what does the same here; empty if none is known to."""
    module, _, last = name.rpartition(".")
    if name in _OTHER_ARGUMENTS:
        return ""
    here = RENAMED.get(name) or f"{_SAME_NAMES.get(module, '')}.{last}"
    if here in MEANINGS or here.startswith("pscdsl.stdlib."):
        return here
    return ""


def written(name: str) -> str:
    """A qualified name as programs write it: `np.exp`, `psc.scan`."""
    module, _, rest = name.partition(".")
    short = {"numpy": "np", "pscdsl": "psc"}.get(module, module)
    return f"{short}.{rest}"


def instead_of(name: str) -> str:
    """What is written in the place of a function of another library; empty if that is not known."""
    here = equivalent(name)
    if here.startswith("pscdsl.stdlib."):
        module, _, function = here.rpartition(".")
        return f"`{function}` of `{module}`"
    return f"`{written(here)}` is its name here" if here else _IN_WORDS.get(name, "")
