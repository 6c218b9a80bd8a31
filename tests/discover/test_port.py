"""`pscdsl port`: functions of JAX are written as kernels only where both are equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from pscdsl._src.checker.check import check_source
from pscdsl._src.cli import main
from pscdsl._src.discover import port_text
from pscdsl._src.discover.port import Ported, port
from pscdsl._src.frontend.modules.files import files_below

HEAD = '''"""A module."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

SCALE = 2.5


class Normal(NamedTuple):
    mean: Float[Array, "d"]
    scale: Float[Array, "d"]


class Layer(eqx.Module):
    weight: Float[Array, "out in"]
    bias: Float[Array, "out"]

    def __call__(self, x: Float[Array, "in"]) -> Float[Array, "out"]:
        return jax.nn.relu(self.weight @ x + self.bias)


def helper(v):
    return jnp.tanh(v) * math.pi


'''
PORTED = """
def scanned(x: Float[Array, "n d"]) -> Float[Array, "n d"]:
    def step(total, row):
        total = 0.5 * total + row  # half
        return total, helper(total)

    return lax.scan(step, jnp.zeros(x.shape[1]), x)[1]
@partial(jax.jit, static_argnames="k")
def drawn(key: PRNGKeyArray, x: Float[Array, "n"], k: int = 3):
    first, _ = jax.random.split(key)
    return x + jax.random.normal(first, x.shape) * SCALE * k
@jax.jit
def stored(i: Int[Array, ""], x: Float[Array, "n"]):
    y: Float[Array, "n"] = x.at[i].set(7)
    return y, x.at[0].multiply(2.0)
def counted(i: Int[Array, "n"], x: Float[Array, "n"]):
    return jnp.zeros(4).at[i].add(x)
def moved(of: Normal, by: Float[Array, "d"]) -> Normal:
    return of._replace(mean=of.mean + by)
def distances(x: Float[Array, "n d"], y: Float[Array, "m d"]) -> Float[Array, "n m"]:
    return jax.vmap(lambda a: jax.vmap(lambda b: jnp.sum((a - b) ** 2))(y))(x)
def softened(x: Float[Array, "n d"]) -> Float[Array, "n d"]:
    return jax.nn.softmax(x, axis=0) + lax.rsqrt(x)
def whole(k: Int[Array, "n"]):
    return k / 2, jnp.arange(3) + k[0], jnp.sum(k)
def promoted(x: Float[Array, "n"], k: Int[Array, "n"]) -> Float[Array, "n"]:
    return x * k
def halved(x: Float[Array, ""]) -> Int[Array, ""]:
    def going(state):
        return (jnp.abs(state[0]) > 1) & (state[1] < 20)

    return lax.while_loop(going, lambda s: (s[0] / 2, s[1] + 1), (x, 0))[1]
def branch(flag: Bool[Array, ""], x: Float[Array, "n"]):
    return lax.cond(flag, lambda v: v.sum(), lambda v: v.max(initial=-1.0), x)
def chosen(i: Int[Array, ""], x: Float[Array, "n"]):
    return lax.switch(i, [jnp.sin, jnp.cos, lambda v: v * 2], x)
def powers(x: Float[Array, "n"]) -> Float[Array, "n"]:
    return lax.fori_loop(0, 3, lambda i, y: y * x + i, jnp.ones_like(x))
def slope(x: Float[Array, "n"]):
    return jax.grad(lambda v: jnp.sum(jnp.tanh(v) ** 2))(x), jax.jacfwd(jnp.sin)(x)
def bounded(x: Float[Array, "n"]) -> Float[Array, "n"]:
    return lax.clamp(-1.0, x, 1.0)
def cast(k: Int[Array, "n"]) -> Float[Array, "n"]:
    return lax.convert_element_type(k, jnp.float32)
def running(x: Float[Array, "n d"]) -> Float[Array, "n d"]:
    return lax.cumsum(x, axis=1)
def encoded(k: Int[Array, "n"]):
    return jax.nn.one_hot(k, 4)
def contracted(x: Float[Array, "b i"], y: Float[Array, "b j"]):
    return jnp.einsum("bi,bj->ij", x, y)
def reduced(x: Float[Array, "n d"]):
    return x.mean(0), x.std(1), jnp.prod(x, axis=1)
def row(i: Int[Array, ""], x: Float[Array, "n d"]):
    return x[i], x[-1]
"""
REFUSED = {
    "shuffled": (
        'def shuffled(key: PRNGKeyArray, x: Float[Array, "n"]):\n'
        "    return jax.random.permutation(key, x)\n",
        "draws other numbers",
    ),
    "either": (
        'def either(x: Float[Array, "n"] | Int[Array, "n"]):\n    return x + 1\n',
        "a union",
    ),
    "descending": (
        'def descending(x: Float[Array, "n"]):\n    return jnp.sort(x, descending=True)\n',
        "keyword",
    ),
    "segments": (
        'def segments(x: Float[Array, "n"], i: Int[Array, "n"]):\n'
        "    return jax.ops.segment_sum(x, i, num_segments=3)\n",
        "no counterpart",
    ),
    "got": (
        'def got(i: Int[Array, "k"], x: Float[Array, "n"]):\n'
        '    return x.at[i].get(mode="fill", fill_value=-1.0)\n',
        "no attribute `at`",
    ),
    "local": (
        'def local(x: Float[Array, "n"]):\n    import jax.numpy as j\n\n    return j.sin(x)\n',
        "imports names",
    ),
    "decided": (
        'def decided(x: Float[Array, "n"]):\n    return jax.nn.one_hot(x, 4, dtype=jnp.int32)\n',
        "other options",
    ),
    "taken": (
        'def taken(x: Float[Array, "n"]):\n    np = 2.0\n    return jnp.sin(x) * np\n',
        "is a name of the file",
    ),
    "opened": (
        'def opened(f: object, x: Float[Array, "n"]):\n    return x + 1\n',
        "no type of a kernel's parameters",
    ),
    "wrong": (
        'def wrong(x: Float[Array, "n"]) -> Float[Array, "m"]:\n    return x[:2] @ x\n',
        "PSC",
    ),
}


def _ported(folder: Path, text: str) -> Ported:
    path = folder / "model.py"
    path.write_text(HEAD + text)
    files = files_below([path])
    return port(files, files.given[0])


def test_functions_are_ported(tmp_path: Path) -> None:
    found = _ported(tmp_path, PORTED)
    assert found.refused == ()
    assert len(found.written) == PORTED.count("\ndef ") + 1
    checked = check_source(found.text, "kernels.py")
    assert not checked.diagnostics
    assert {each.status for each in checked.kernels} == {"ok"}
    assert "  # half" in found.text
    assert "jax." not in found.text.replace("# Differs", "")
    differing = {each.name for each in found.written if each.notes}
    assert differing == {"stored", "counted"}
    assert found.text.count("# Differs: an index out of range is clamped") == 2


@pytest.mark.parametrize("name", REFUSED)
def test_others_are_refused_with_the_reason(tmp_path: Path, name: str) -> None:
    text, why = REFUSED[name]
    (refused,) = (each for each in _ported(tmp_path, text).refused if each.name == name)
    assert why in refused.why


@pytest.mark.parametrize(
    ("function", "template"),
    [
        ("jax.lax.clamp", ("min x max", "np.clip({x}, {max}, {min})")),
        ("jax.lax.cumsum", ("operand axis=0", "np.cumprod({operand}, axis={axis})")),
        ("jax.lax.rsqrt", ("x", "np.sqrt({x})")),
        (
            "jax.nn.one_hot",
            ("x num_classes", "(np.asarray({x})[..., None] == np.arange({num_classes}))"),
        ),
    ],
)
def test_a_wrong_row_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, template: tuple[str, str]
) -> None:
    right = {each.name for each in _ported(tmp_path, PORTED).written}
    monkeypatch.setattr(port_text, "TEMPLATES", {**port_text.TEMPLATES, function: template})
    found = {each.name for each in _ported(tmp_path, PORTED).written}
    assert len(right - found) == 1


def test_the_command_writes_a_new_file_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = tmp_path / "model.py", tmp_path / "kernels.py"
    path.write_text(HEAD + PORTED)
    assert main(["port", str(path), "-o", str(output)]) == 0
    assert "@psc.kernel" in output.read_text()
    assert main(["port", str(path), "-o", str(output)]) == 2
    assert main(["port", str(path)]) == 0
    assert capsys.readouterr().out == output.read_text()
    path.write_text(HEAD + REFUSED["shuffled"][0])
    assert main(["port", str(path)]) == 1
