"""Functions of JAX and of libraries beside it, by what they do to functions and keys."""

from __future__ import annotations

SEEDS = frozenset({"PRNGKey", "key"})
"""Functions of `jax.random` that make a key from a seed."""
KEY_FUNCTIONS = frozenset("PRNGKey key split fold_in clone key_data wrap_key_data key_impl".split())
"""Functions of `jax.random` that draw no numbers; all others use up a key."""
LAYERS = frozenset(
    "Linear MLP Conv Conv1d Conv2d Conv3d ConvTranspose ConvTranspose1d ConvTranspose2d "
    "ConvTranspose3d Embedding GRUCell LSTMCell MultiheadAttention".split()
)
"""Layers of `equinox.nn` that are initialised from `key=`."""
CONSTANT_INITIALIZERS = frozenset("zeros ones constant zeros_init ones_init".split())
SAME = frozenset(
    "jax.device_put jax.numpy.array jax.numpy.asarray jax.numpy.squeeze jax.lax.squeeze".split()
)
"""Functions whose result holds the same keys at the same places, but for axes of one key."""
ARRANGED = frozenset(
    "jax.numpy.reshape jax.numpy.ravel jax.numpy.expand_dims jax.numpy.broadcast_to "
    "jax.lax.reshape jax.lax.broadcast jax.lax.broadcast_in_dim jax.lax.expand_dims".split()
)
"""Functions whose result holds the same keys at other places."""
JOINED = frozenset(
    "jax.numpy.array jax.numpy.asarray jax.numpy.stack jax.numpy.concatenate "
    "jax.lax.concatenate".split()
)
"""Functions that make an array of several."""

JITTED = frozenset({"jax.jit", "jax.pmap", "equinox.filter_jit", "equinox.filter_pmap"})
"""Transformations that store the program, and run it again for other arguments."""
OF_ARRAYS = frozenset({"equinox.filter_jit", "equinox.filter_pmap"})
"""Transformations that trace arrays alone: a number keeps its value."""
TRACING = JITTED | {
    *("jax.lax.scan", "jax.lax.map", "jax.lax.while_loop", "jax.lax.fori_loop", "jax.lax.cond"),
}
"""Transformations for which no element of an array is known while they run a function."""
TRANSPARENT = frozenset(
    {
        *("jax.jit", "jax.remat", "jax.named_call", "jax.custom_jvp", "jax.custom_vjp"),
        *("equinox.filter_jit", "equinox.filter_checkpoint", "equinox.filter_custom_vjp"),
        *("builtins.staticmethod", "typing.override", "typing.no_type_check"),
        *("typing_extensions.override", "jaxtyping.jaxtyped", "abc.abstractmethod"),
    }
)
"""Functions whose result is called like the function that they are given."""
MAPPED = frozenset({"jax.vmap", "jax.pmap", "equinox.filter_vmap", "equinox.filter_pmap"})
DERIVATIVES = frozenset(
    name
    for name in (
        "jax.grad jax.value_and_grad jax.jacfwd jax.jacrev jax.jacobian jax.hessian "
        "equinox.filter_grad equinox.filter_value_and_grad equinox.filter_jacfwd "
        "equinox.filter_jacrev"
    ).split()
)
PER_ELEMENT = frozenset({"jax.tree_util.tree_map", "builtins.map"})

RUN: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(JITTED | MAPPED, (0,)),
    **dict.fromkeys(("jax.grad", "jax.value_and_grad", "jax.jacfwd", "jax.jacrev"), (0,)),
    **dict.fromkeys(("jax.hessian", "jax.linearize", "jax.vjp", "jax.jvp", "jax.remat"), (0,)),
    **dict.fromkeys(("equinox.filter_grad", "equinox.filter_value_and_grad"), (0,)),
    **dict.fromkeys(
        ("equinox.filter_checkpoint", "equinox.filter_jvp", "equinox.filter_vjp"), (0,)
    ),
    **dict.fromkeys(("jax.lax.scan", "jax.lax.map", "jax.lax.associative_scan"), (0,)),
    "jax.lax.while_loop": (0, 1),
    "jax.lax.fori_loop": (2,),
    "jax.lax.cond": (1, 2),
    "jax.lax.switch": (1,),
}
"""Transformations, with the positions of the functions that they run."""
BODIES = ("f", "fun", "body_fun", "cond_fun", "true_fun", "false_fun", "branches")
CLOCKS = frozenset(
    {
        *("time.time", "time.time_ns", "time.perf_counter", "time.perf_counter_ns"),
        *("time.monotonic", "time.monotonic_ns", "time.process_time"),
        *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today"),
        *("datetime.date.today",),
    }
)
NUMPY_STATES = frozenset("default_rng RandomState Generator SeedSequence PCG64 Philox".split())
"""Names of `numpy.random` that are no draws from its global state."""
PYTHON_STATES = frozenset({"Random", "SystemRandom"})
FOLLOWED = frozenset(
    "builtins chex collections copy dataclasses equinox functools itertools jax jaxtyping math "
    "numpy operator types typing typing_extensions warnings".split()
)
"""Libraries whose effects are known, or are none."""
QUIET_METHODS = frozenset(
    "all any argmax argmin argsort astype clip conj copy cumprod cumsum diagonal dot fill flatten "
    "item max mean min nonzero prod ravel repeat reshape round searchsorted sort squeeze std sum "
    "swapaxes take tobytes tolist trace transpose var set add multiply mul divide power apply get "
    "items keys values index count split join format startswith endswith strip lower upper "
    "replace removeprefix removesuffix encode decode _replace _asdict".split()
)
"""Methods of arrays, of `x.at[i]`, of texts and of containers that have no effect."""
