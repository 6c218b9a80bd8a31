"""Tensors of PyTorch: in without copies where that is asked for, out without, and kept safe.

They need PyTorch, which the rest of the tests must do without: `make interop` gives it to them.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Bool, Num, f32, f64
from tests.interop.capsules import on_a_gpu

torch: Any = pytest.importorskip("torch")
NUMBERS = (
    "float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
    "complex64 complex128"
).split()


class Layer(psc.Record):
    """A matrix and what is added."""

    w: f32["n n"]
    b: f32["n"]


@psc.kernel
def layer(p: Layer, x: f32["n"]) -> f32["n"]:
    return np.tanh(p.w @ x + p.b)


@psc.kernel
def doubled(x: f32["n"]) -> f32["n"]:
    return 2 * x


@psc.kernel
def same(x: Num["*b"]) -> Num["*b"]:
    return x


@psc.kernel
def opposite(x: Bool["*b"]) -> Bool["*b"]:
    return ~x


@psc.kernel
def maybe_empty(x: f32["n m"]) -> f32["n m"]:
    assert x.shape[0] >= 0
    return x + 1


@psc.kernel(donate="x")
def step(x: f32["n"]) -> f32["n"]:
    return x + 1


@psc.kernel
def decomposed(a: f32["n n"]) -> f32["n"]:
    return np.linalg.svd(a)[1]


@psc.kernel
def thrice(x: f64["n"]) -> tuple[f64["n"], f64["n"], f64["n"]]:
    return x, x, 1 * x


def tensor(*shape: int, dtype: str = "float32") -> Any:
    """Numbers, in memory that begins where XLA wants it, as that of tensors does."""
    count = int(np.prod(shape))
    return torch.arange(count).reshape(shape).to(getattr(torch, dtype))


def address(array: Any) -> int:
    return int(np.asarray(array).ctypes.data)


def exact(found: Any, wanted: Any) -> None:
    """Raise if a result is not a tensor's values and dtype."""
    back = torch.from_dlpack(found)
    assert back.dtype == wanted.dtype
    assert back.shape == wanted.shape
    assert torch.equal(back.view(torch.uint8), wanted.contiguous().view(torch.uint8))


# Into kernels.


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("shape", [(), (1,), (3, 4)], ids=str)
def test_numbers_of_every_dtype(dtype: str, shape: tuple[int, ...]) -> None:
    x = tensor(*shape, dtype=dtype)
    found = same(x)
    assert torch.from_dlpack(found).dtype == x.dtype
    assert torch.from_dlpack(found).shape == x.shape
    assert torch.from_dlpack(found).tolist() == x.tolist()
    assert torch.from_dlpack(psc.from_dlpack(x)).data_ptr() == x.data_ptr()


def test_truth_values() -> None:
    x = torch.tensor([True, False, True])
    assert torch.from_dlpack(opposite(x)).tolist() == [False, True, False]
    assert torch.from_dlpack(psc.from_dlpack(x)).data_ptr() == x.data_ptr()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "int8"])
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.T,
        lambda x: x[::2],
        lambda x: x[1:, 1:3],
        lambda x: x[:, 0],
        lambda x: x[:1].expand(5, 4),
        lambda x: x[2:, :0],
        lambda x: x.permute(1, 0)[1],
    ],
    ids=["transposed", "strided", "inner", "column", "expanded", "empty", "row of transposed"],
)
def test_views(dtype: str, view: Any) -> None:
    x = tensor(3, 4, dtype=dtype)
    odd = view(x)
    found = psc.from_dlpack(odd)
    assert torch.from_dlpack(found).tolist() == odd.tolist()
    if odd.numel():
        assert torch.from_dlpack(same(odd)).tolist() == odd.tolist()
        if not odd.is_contiguous():
            with pytest.raises(BufferError, match="not contiguous in C order"):
                psc.from_dlpack(odd, copy=False)


def test_writes_after_a_call_are_not_seen() -> None:
    wanted = torch.tanh(torch.ones(64))
    results: list[Any] = []
    for _ in range(3):
        w, b, x = torch.eye(64), torch.zeros(64), torch.ones(64)
        results.append(layer(Layer(w, b), x))
        for each in (w, b, x):
            each.fill_(3)
    for each in results:
        np.testing.assert_allclose(np.asarray(each), wanted.numpy(), rtol=1e-5)


def test_records_of_tensors_batches_and_derivatives() -> None:
    w, x = torch.eye(3) / 2, torch.tensor([1.0, 2.0, 3.0])
    p = Layer(w, torch.ones(3))

    @psc.kernel
    def loss(p: Layer, x: f32["n"]) -> f32:
        return np.sum(layer(p, x) ** 2)

    w = w.clone().requires_grad_()
    (torch.tanh(w @ x + p.b) ** 2).sum().backward()
    slope = psc.grad(loss)(p, x)
    np.testing.assert_allclose(np.asarray(slope.w), w.grad.numpy(), rtol=1e-5)
    rows = psc.vmap(layer, (None, 0))(p, torch.stack([x, 2 * x]))
    np.testing.assert_allclose(np.asarray(rows)[0], np.asarray(layer(p, x)), rtol=1e-6)


def test_nothing_is_compiled_again() -> None:
    @psc.kernel
    def halved(x: f32["n"]) -> f32["n"]:
        return x / 2

    for x in (torch.ones(5), np.ones(5, np.float32), torch.ones(10)[::2], torch.ones(5)):
        halved(x)
    assert halved.cache_info().entries == 1


def test_no_elements() -> None:
    assert torch.from_dlpack(maybe_empty(torch.zeros(0, 3))).shape == (0, 3)
    with pytest.raises(psc.ArgumentError, match="is 0; it is at least 1"):
        doubled(torch.zeros(0))


# Shared memory.


def test_from_dlpack_shares_memory() -> None:
    x = tensor(1024)
    shared, copied = psc.from_dlpack(x), psc.from_dlpack(x, copy=True)
    assert psc.from_dlpack(x, copy=False) is not copied
    assert address(shared) == x.data_ptr()
    assert address(copied) != x.data_ptr()
    x[0] = 7
    assert (np.asarray(shared)[0], np.asarray(copied)[0]) == (7, 0)


def test_shared_memory_that_is_not_aligned_is_copied() -> None:
    x = tensor(1025)[1:]
    assert x.data_ptr() % 64
    assert address(psc.from_dlpack(x)) != x.data_ptr()
    with pytest.raises(BufferError, match="not aligned to 64 bytes"):
        psc.from_dlpack(x, copy=False)


def test_a_tensor_may_go_before_what_shares_its_memory() -> None:
    for dtype in ("float32", "bfloat16"):
        kept = [psc.from_dlpack(torch.full((4096,), i).to(getattr(torch, dtype))) for i in range(9)]
        junk = [torch.full((4096,), -1.0) for _ in range(50)]
        assert [float(np.asarray(each)[-1]) for each in kept] == list(range(9))
        del junk


def test_donating_shared_memory_writes_to_no_tensor() -> None:
    x = torch.zeros(4096)
    shared = psc.from_dlpack(x)
    found = step(shared)
    assert address(found) != x.data_ptr()
    assert not x.any()
    with pytest.raises(psc.ArgumentError, match="donated to an earlier call"):
        step(shared)
    again = step(step(x))  # of a tensor it is a copy that is given away
    assert not x.any()
    assert np.asarray(again).tolist() == [2] * 4096


# Out of kernels.


def test_results_are_tensors_without_a_copy() -> None:
    found = doubled(torch.ones(1000))
    back = torch.from_dlpack(found)
    assert back.data_ptr() == address(found)
    del found
    assert back.sum() == 2000


def test_results_have_memory_of_their_own() -> None:
    x = torch.ones(64, dtype=torch.float64)
    shared = psc.from_dlpack(x)
    found = [torch.from_dlpack(each) for each in thrice(shared)]
    found[0].zero_()  # PyTorch has no tensors that cannot be written to
    assert [float(each.sum()) for each in (*found, x)] == [0, 64, 64, 64]


def test_numpy_gets_what_it_cannot_write_to() -> None:
    found = doubled(torch.ones(8))
    for array in (np.asarray(found), np.from_dlpack(found)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


# What is refused.


def refused() -> dict[str, tuple[Any, str]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "gradient": (torch.ones(3).requires_grad_(), "use tensor.detach"),
            "parameter": (torch.nn.Parameter(torch.ones(3)), "use tensor.detach"),
            "gradient in bf16": (
                torch.ones(3, dtype=torch.bfloat16).requires_grad_(),
                "use tensor.detach",
            ),
            "conjugated": (torch.ones(3, dtype=torch.complex64).conj(), "conjugate bit"),
            "meta": (torch.empty(3, device="meta"), "meta"),
            "sparse": (torch.eye(3).to_sparse(), "layout"),
            "quantised": (
                torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8),
                "not supported by dlpack",
            ),
            "half complex": (torch.ones(3, dtype=torch.complex32), "Unsupported dtype"),
            "ragged": (torch.nested.nested_tensor([torch.ones(3), torch.ones(2)]), "sizes|layout"),
        }


@pytest.mark.parametrize("name", refused())
def test_what_cannot_be_read_is_said(name: str) -> None:
    x, why = refused()[name]
    for _ in range(2):
        with pytest.raises(psc.ArgumentError, match=f"`x` of `same` is an array of class.*{why}"):
            same(x)
        with pytest.raises(BufferError, match=why):
            psc.from_dlpack(x)
    with pytest.raises(psc.ArgumentError, match=why):
        psc.tree.norm((x,))


def test_dtypes_that_kernels_do_not_have() -> None:
    x = torch.ones(3).to(torch.float8_e5m2)
    with pytest.raises(psc.ArgumentError, match="cannot be read: Unsupported dtype"):
        same(x)
    with pytest.raises(BufferError, match="Unsupported dtype"):
        psc.from_dlpack(x)


def test_types_are_checked_as_for_other_arrays() -> None:
    with pytest.raises(psc.ArgumentError, match=r"`x` of `doubled` is f64\[3\], but f32\[n\]"):
        doubled(torch.ones(3, dtype=torch.float64))
    with pytest.raises(psc.ArgumentError, match=r"is f32\[3 2\].*2 axes, not 1"):
        doubled(torch.ones(3, 2))
    with pytest.raises(psc.ArgumentError, match="`x` of `layer` is f32"):
        layer(Layer(torch.eye(3), torch.ones(3)), torch.ones(4))


class Elsewhere:
    """A tensor that says of itself that it lies on a GPU."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)

    def __dlpack__(self, **_: Any) -> Any:
        return on_a_gpu(self.inner.__dlpack__())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_tensors_on_other_devices(dtype: str) -> None:
    on_gpu: Any = Elsewhere(tensor(3, dtype=dtype))
    with pytest.raises(BufferError, match="Unsupported d"):
        psc.from_dlpack(on_gpu)
    with pytest.raises(psc.ArgumentError, match=r"class Elsewhere that cannot be read: Unsupp"):
        same(on_gpu)


# PyTorch and jaxlib in one process.


TOGETHER = """
import sys
{imports}
import numpy as np
from tests.interop.test_torch import decomposed, step

a = torch.rand(300, 300)
product = a @ a                                      # threads of OpenMP, and of XLA
found = decomposed(a)                                # LAPACK of one, and of the other
assert np.allclose(np.asarray(found), torch.linalg.svdvals(a).numpy(), rtol=1e-3, atol=1e-3)
x = torch.zeros(1 << 20)
for _ in range(20):
    x = torch.from_dlpack(step(x)) * 1.0
assert x[0] == 20 and torch.allclose(a @ a, product)
psc.from_dlpack(a.to(torch.bfloat16))
assert "jax" not in sys.modules
"""


@pytest.mark.parametrize(
    "imports",
    ["import torch; import pscdsl as psc", "import pscdsl as psc; import torch"],
    ids=["PyTorch first", "PyTorch last"],
)
def test_in_one_process(imports: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", TOGETHER.format(imports=imports)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
