"""What arrays do, as text: run in a process of its own, with jax imported before, after or never.

`python array_outcomes.py OURS WHEN` prints one line of JSON, the outcome of each expression.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np

import pscdsl as psc

UFUNCS = sorted(name for name in dir(np) if isinstance(getattr(np, name), np.ufunc))
BINARY = "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift".split()
COMPARISONS = "eq ne lt le gt ge".split()
UNARY = "neg pos abs invert index truth length_hint".split()
METHODS = {
    "argpartition": "1",
    "astype": "'float64'",
    "choose": "[x.to_numpy().astype('i8') * 0] * 3",
    "clip": "0, 2",
    "compress": "[True, False], 0",
    "diagonal": "",
    "dot": "x.to_numpy().T",
    "item": "0",
    "repeat": "2",
    "reshape": "-1",
    "round": "1",
    "searchsorted": "2",
    "swapaxes": "0, -1",
    "take": "[0, 1]",
    "to_device": "'cpu'",
    "view": "np.uint8",
    "__add__": "1",
    "__array__": "'float64'",
    "__contains__": "2",
    "__divmod__": "2",
    "__format__": "''",
    "__getitem__": "0",
    "__rdivmod__": "2",
    "__round__": "1",
    "__setitem__": "0, 1",
    "__dlpack__": "copy=True",
    "__deepcopy__": "{}",
    "__setattr__": "'T', 1",
    "__delattr__": "'T'",
    "__eq__": "2",
}
"""What methods are called with that need something, or do nothing of interest without it."""
WRITTEN = """
x[0] ; x[-1] ; x[..., 0] ; x[0, 0] ; x[x > 1] ; x[[0, 1]] ; x[np.array([1])] ; x[None] ; x[99]
x['a'] ; x[x.astype(int)[..., 0] * 0] ; list(x) ; [*map(type, x)] ; tuple(reversed(x)) ; len(x)
bool(x) ; float(x) ; int(x) ; complex(x) ; bool(x[0, 0]) ; float(x[0, 0]) ; operator.index(x)
range(x) ; round(x) ; round(x, 1) ; math.floor(x) ; x + 1 ; 1 + x ; x + 1.5 ; x + x
x - np.ones(3, 'f4') ; np.ones(3) * x ; x @ x.T ; x.T @ x ; x ** 2 ; 2 ** x ; x == x ; x != None
x == 'a' ; x < (1, 2, 3) ; x + [1, 2, 3] ; x + np.float64(1) ; np.float64(1) + x ; np.int8(1) * x
x / 0 ; divmod(x, 2) ; divmod(2, x) ; abs(x) ; -x ; +x ; ~x ; x & x ; x | 1 ; x ^ x ; x << 1
1 >> x ; x.sum(0) ; x.sum(axis=-1, keepdims=True) ; x.mean(dtype='f8') ; x.std(ddof=1)
x.max(axis=0) ; x.argmax(1) ; x.cumsum(0) ; x.all(0) ; x.any() ; x.T ; x.mT ; x.real ; x.imag
x.shape ; x.dtype ; x.ndim ; x.size ; x.nbytes ; x.itemsize ; list(x.flat) ; x.reshape(3, -1)
x.reshape((-1,)) ; x.ravel('F') ; x.flatten() ; x.squeeze() ; x.transpose(1, 0)
x.transpose((1, 0)) ; x.astype('f8') ; x.astype(np.int64) ; x.astype('i8') + 2**40
x.astype(complex) ; x.astype(bool) ; x.tolist() ; x.tobytes() ; x.item() ; x.copy()
x.copy().flags.writeable ; np.asarray(x).flags.writeable ; np.array(x).flags.writeable
np.asarray(x, 'f8') ; np.asarray(x, copy=False) ; copy.copy(x) ; copy.deepcopy(x)
pickle.loads(pickle.dumps(x)) ; pickle.loads(pickle.dumps(x, 0)) ; repr(x)
copy.deepcopy([x, {1: x}]) ; str(x) ; f'{x}' ; format(x, '>90') ; format(x[0, 0], '.3f')
'%s' % x ; hash(x) ; {x} ; x in [x] ; 2 in x ; x.fill(0) ; x.put(0, 1) ; x.resize(2)
x.partition(1) ; x.sort() ; x.sort ; sorted(x[0]) ; max(x[0]) ; sum(x) ; np.from_dlpack(x)
memoryview(x).shape ; x.block_until_ready() ; x.is_deleted() ; x.to_numpy() ; x.device
x.__array_namespace__().__name__ ; isinstance(x, psc.Array) ; isinstance(x, np.ndarray)
callable(x) ; x.nonsense ; setattr(x, 'T', 1) ; x.__array_priority__ ; operator.iadd(x, 1)
operator.setitem(x, 0, 1) ; operator.delitem(x, 0) ; np.add(x, 1, out=np.zeros((2, 3), 'f8'))
np.einsum('ij,kj->ik', x, x) ; np.concatenate([x, x]) ; np.stack([x, x]) ; np.where(x > 1, x, 0)
np.vdot(x, x) ; np.dot(x, x.T) ; np.linalg.norm(x) ; np.linalg.svd(x)[1].shape ; np.allclose(x, x)
np.array_equal(x, x) ; np.pad(x, 1) ; np.broadcast_to(x, (4, 2, 3)) ; np.tensordot(x, x)
np.interp(1.5, x[0], x[0]) ; np.savez ; np.array([x, x])
np.take_along_axis(x, np.argsort(x), -1) ; np.apply_along_axis(sum, 0, x)
np.may_share_memory(x, x) ; np.can_cast(x, 'f8') ; np.zeros_like(x) ; np.empty_like(x).shape
np.full_like(x, 2) ; np.result_type(x, 'f4') ; np.ndim(x) ; np.shape(x) ; np.isscalar(x)
np.iterable(x) ; np.polyval(x[0], 2) ; np.histogram(x)[0] ; np.bincount([1])
np.vectorize(abs)(x) ; np.random.default_rng(0).permutation(x)
np.lib.stride_tricks.sliding_window_view(x, (1, 2)) ; np.testing.assert_array_equal(x, x)
kernel(x) ; kernel(x + 1) ; kernel(x.copy()) ; kernel(kernel(x)) ; [kernel(x) for _ in range(3)]
double(x).item()
"""


def expressions(ours: bool, attributes: Sequence[str] = ()) -> Iterator[str]:
    """One for each attribute, operator and function of NumPy, and those that were written."""
    for line in WRITTEN.strip().splitlines():
        for each in line.split(" ; "):
            if ours or not any(word in each for word in ("to_numpy", "kernel", "double", "psc.")):
                yield each
    for name in BINARY:
        yield from (f"operator.{name}(x, 2)", f"operator.{name}(2, x)", f"operator.{name}(x, x)")
        yield f"operator.{name}(x, np.ones(3, 'i4'))"
        yield f"operator.{name}(np.ones(3, 'f8'), x)"
    for name in COMPARISONS:
        yield from (f"operator.{name}(x, 2)", f"operator.{name}(2.5, x)", f"operator.{name}(x, x)")
    yield from (f"operator.{name}(x)" for name in UNARY)
    if not ours:
        return  # each of these jax compiles
    for name in UFUNCS:
        if getattr(np, name).nin == 1:
            yield f"np.{name}(x)"
        elif name not in ("vecdot", "matvec", "vecmat"):
            yield from (f"np.{name}(x, 2)", f"np.{name}(x, x)")
    skipped = {"show_config", "show_runtime", "info", "test", "save", "savetxt", "load", "fromfile"}
    for name in sorted(set(np.__all__) - set(UFUNCS) - skipped):
        function = getattr(np, name)
        if callable(function) and not isinstance(function, type):
            yield f"np.{name}(x)"
    for name in attributes:
        yield from (f"x.{name}", f"x.{name}({METHODS.get(name, '')})")


_MACHINERY = frozenset(
    "__class__ __dict__ __dir__ __getattribute__ __init__ __init_subclass__ __new__ __del__ "
    "__subclasshook__ __sizeof__ __doc__ __module__ __reduce_ex__ __reduce__ __getstate__ aval "
    "traceback clone delete unsafe_buffer_pointer unsafe_raw_buffer __dlpack__ __buffer__ "
    "__release_buffer__ __cuda_array_interface__ on_device_size_in_bytes platform is_ready "
    "__weakref__ __static_attributes__ __firstlineno__".split()
)
"""What the class has from C++ or from Python, is the same anyway, or destroys the array."""


def described(value: Any) -> Any:
    """A value as text that tells its class, dtype, shape and contents."""
    kind: type[Any] = type(value)
    if isinstance(value, np.ndarray | np.generic):
        return [
            kind.__name__,
            str(value.dtype),
            list(value.shape),
            np.asarray(value).tobytes().hex(),
        ]
    if kind.__name__ == "ArrayImpl":
        contents = np.asarray(value)
        return ["ArrayImpl", repr(value), described(contents)]
    if kind in (list, tuple):
        return [kind.__name__, *map(described, value)]
    if kind is dict:
        return ["dict", *[[str(key), described(each)] for key, each in value.items()]]
    text = repr(value) if not callable(value) else getattr(value, "__name__", "")
    return [kind.__name__, text.split(" at 0x")[0]]


def outcome(expression: str, names: dict[str, Any]) -> Any:
    """What comes of an expression: a value, or an error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return described(eval(expression, {**globals(), **names}))
        except Exception as error:
            return [type(error).__name__, str(error).split(" at 0x")[0]]


def use_jax() -> Any:
    """jax, once it was imported and has computed something."""
    jax: Any = import_module("jax")
    made = jax.numpy.ones(3) + 1
    assert made.shape == (3,)
    return jax


def of_results(when: str, attributes: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """The names of what results have, and the outcomes for some of them."""
    from tests.interop.array_kernels import double, kernel

    made: list[Any] = [kernel(x) if x.size else psc.from_dlpack(x) for x in INPUTS]
    names = attributes or [
        name
        for name in dir(made[0])
        if name not in _MACHINERY and (name[:1] != "_" or name[:2] == "__")
    ]
    if when == "after":
        use_jax()
    return [*names], {
        f"{expression} | {x.dtype}{list(x.shape)}": outcome(
            expression, {"x": x, "kernel": kernel, "double": double, "psc": psc}
        )
        for expression in expressions(True, names)
        for x in made
    }


def of_jax(when: str) -> dict[str, Any]:
    """The outcomes for jax's own arrays; unless it is "never", kernels run in the process."""
    if when == "first":
        use_jax()
    if when != "never":
        from tests.interop.array_kernels import kernel

        kernel(INPUTS[0])
    jax = use_jax()
    arrays: list[Any] = [jax.numpy.asarray(each) for each in INPUTS[:2]]
    return {
        f"{expression} | {x.dtype}{list(x.shape)}": outcome(expression, {"x": x, "psc": psc})
        for expression in [*expressions(False), "dir(x)", "x.sharding.shard_shape((1, 2))"]
        for x in arrays
    }


INPUTS: Sequence[Any] = (
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.arange(6, dtype=np.int32).reshape(2, 3) - 2,
    np.linspace(-1, 1, 6).reshape(2, 3),
    np.arange(6, dtype=np.int64).reshape(2, 3) + 2**40,
    np.array([[True, False, True]]),
    np.array([1 + 2j, 3]),
    np.zeros((0, 3), np.float32),
    np.float32(2.5),
    np.uint8(3),
)


if __name__ == "__main__":
    _, whose, when = sys.argv
    if whose == "ours":
        if when == "first":
            use_jax()
        print(json.dumps(of_results(when, json.loads(sys.stdin.read() or "[]"))))
    else:
        print(json.dumps([[], of_jax(when)]))
