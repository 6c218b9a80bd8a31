"""The workloads written for others than jax: plain NumPy, Numba, and torch.compile.

NumPy runs the body of a kernel as it stands, where that uses nothing but NumPy.  Numba and PyTorch
stand beside the workloads that people write for them, where they are installed: `make bench`
installs Numba; PyTorch is as large as everything else together, so that `make bench-torch` alone
installs it, in a folder beside the environment.  It needs a compiler for C++.  Its threads and
XLA's would disturb each other: each side has processes of its own.
"""

# pyright: basic

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from benchmarks.workload import Workload, leaves
from pscdsl import Array

Make: TypeAlias = Callable[[Any], Callable[..., Any]]
"""Makes a function of NumPy arrays, given the rival's module."""


def rivals(work: Workload, arguments: tuple[Any, ...]) -> dict[str, Callable[..., Any]]:
    """Functions of the arguments by the names of those that run them, where these are installed."""
    found: dict[str, Callable[..., Any]] = {}
    body = vars(work.kernel).get("__wrapped__")
    if body is not None and _runs(body, arguments):
        found["numpy"] = lambda *_: body(*arguments)  # records as they are
    if work.name in NUMBA and (numba := _module("numba")) is not None:
        found["numba"] = NUMBA[work.name](numba)
    for rival, make in work.others.items():
        found[rival] = make()
    return found


def has_torch(work: Workload) -> bool:
    """Whether a workload is written for PyTorch, and that is there."""
    return work.name in TORCH and importlib.util.find_spec("torch") is not None


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _runs(body: Callable[..., Any], arguments: tuple[Any, ...]) -> bool:
    """Whether plain NumPy can run a kernel's body."""
    try:
        with np.errstate(all="ignore"):
            found = body(*arguments)
    except Exception:  # it calls what only a kernel can
        return False
    return not any(isinstance(each, Array) for each in leaves(found))  # another kernel's


def _jitted(numba: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    made: Callable[..., Any] = numba.njit(function)
    return made


def _kalman_numba(numba: Any) -> Callable[..., Any]:
    def kalman(f: Any, h: Any, q: Any, r: Any, x0: Any, ys: Any) -> Any:
        x, p = x0, np.eye(x0.size)
        found = np.empty((ys.shape[0], x0.size))
        for t in range(ys.shape[0]):
            x, p = f @ x, f @ p @ f.T + q
            s = h @ p @ h.T + r
            gain = np.linalg.solve(s, h @ p).T
            x = x + gain @ (ys[t] - h @ x)
            p = p - gain @ h @ p
            found[t] = x
        return found

    return _jitted(numba, kalman)


def _lorenz_numba(numba: Any) -> Callable[..., Any]:
    def slope(s: Any) -> Any:
        x, y, z = s
        return np.array([10.0 * (y - x), x * (28.0 - z) - y, x * y - (8.0 / 3.0) * z])

    slope_of = _jitted(numba, slope)

    def lorenz(s: Any) -> Any:
        dt = 0.005
        for _ in range(1000):
            k1 = slope_of(s)
            k2 = slope_of(s + dt / 2 * k1)
            k3 = slope_of(s + dt / 2 * k2)
            k4 = slope_of(s + dt * k3)
            s = s + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return s

    return _jitted(numba, lorenz)


def _cg_numba(numba: Any) -> Callable[..., Any]:
    def conjugate_gradients(a: Any, b: Any) -> Any:
        x = np.zeros_like(b)
        r = b - a @ x
        p, rr = r, r @ r
        for _ in range(1000):
            if not rr > 1e-20:
                break
            ap = a @ p
            alpha = rr / (p @ ap)
            x, r = x + alpha * p, r - alpha * ap
            new = r @ r
            p, rr = r + new / rr * p, new
        return x

    return _jitted(numba, conjugate_gradients)


def _of_numpy(name: str) -> Make:
    def make(numba: Any) -> Callable[..., Any]:
        function = getattr(np, name)
        return _jitted(numba, lambda x: function(x))

    return make


NUMBA: dict[str, Make] = {
    "kalman, 4 states": _kalman_numba,
    "lorenz": _lorenz_numba,
    **{f"cg-{n}": _cg_numba for n in (16, 32, 64, 128)},
    "sort 1M": _of_numpy("sort"),
    "cumsum 1M": _of_numpy("cumsum"),
    "sin 1M": _of_numpy("sin"),
    "tanh": _of_numpy("tanh"),
}


def _compiled(torch: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors, compiled, as one of NumPy arrays and trees of them."""
    run = torch.compile(function, fullgraph=True)  # nothing is left to Python

    def tensors(tree: Any) -> Any:
        if isinstance(tree, tuple):
            return tuple(map(tensors, tree))
        return torch.from_numpy(tree)

    def call(*arguments: Any) -> Any:
        return run(*tensors(arguments))

    return call


def _softmax_torch(torch: Any) -> Callable[..., Any]:
    return _compiled(torch, lambda x: torch.softmax(x, -1))


def _gelu_torch(torch: Any) -> Callable[..., Any]:
    return _compiled(torch, torch.nn.functional.gelu)


def _logsumexp_torch(torch: Any) -> Callable[..., Any]:
    return _compiled(torch, lambda x: torch.logsumexp(x, -1))


def _descent(torch: Any, loss: Callable[..., Any]) -> Callable[..., Any]:
    def step(p: Any, x: Any, y: Any) -> Any:
        slopes, value = torch.func.grad_and_value(loss)(p, x, y)
        return tuple(w - 0.01 * g for w, g in zip(p, slopes, strict=True)), value

    return _compiled(torch, step)


def _perceptron_torch(torch: Any) -> Callable[..., Any]:
    def loss(p: Any, x: Any, labels: Any) -> Any:
        w1, b1, w2, b2, w3 = p
        z = torch.relu(torch.relu(x @ w1 + b1) @ w2 + b2) @ w3
        found = torch.softmax(z, 1)
        return -torch.log(found.gather(1, labels.long()[:, None]) + 1e-6).mean()

    return _descent(torch, loss)


def _transformer_torch(torch: Any) -> Callable[..., Any]:
    def norm(v: Any, g: Any) -> Any:
        m = v.mean(-1, keepdim=True)
        return (v - m) / torch.sqrt(((v - m) ** 2).mean(-1, keepdim=True) + 1e-5) * g

    def loss(p: Any, x: Any, y: Any) -> Any:
        wq, wk, wv, wo, g, w1, w2 = p
        t, d = x.shape[-2:]
        h = norm(x, g)
        scores = (h @ wq) @ (h @ wk).mT / d**0.5
        mask = torch.ones(t, t, dtype=torch.bool).tril()
        x = x + (torch.softmax(scores.masked_fill(~mask, -1e9), -1) @ (h @ wv)) @ wo
        z = norm(x, g) @ w1
        z = z * 0.5 * (1 + torch.tanh(0.7978845608 * (z + 0.044715 * z * z * z)))
        return ((x + z @ w2 - y) ** 2).mean()

    return _descent(torch, loss)


TORCH: dict[str, Make] = {
    "softmax": _softmax_torch,
    "gelu": _gelu_torch,
    "logsumexp": _logsumexp_torch,
    "perceptron, a step": _perceptron_torch,
    "transformer block, a step": _transformer_torch,
    "transformer block, a step, large": _transformer_torch,
}
