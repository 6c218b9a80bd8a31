"""Fixes: what is written instead, that it mends what was found, and that it stays that way."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache

import pytest

from pscdsl._src.checker.check import check_source
from pscdsl._src.checker.fixing import Fixed, fix_all
from pscdsl._src.checker.selection import all_kinds
from pscdsl._src.cli.check import caveats
from pscdsl._src.frontend.fixes import BUILDERS
from pscdsl._src.frontend.modules.files import Files
from pscdsl._src.frontend.purity import RENAMED, equivalent
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.language.meanings import MEANINGS
from pscdsl.typing.codes.language import NotCallable, UnknownName
from pscdsl.typing.codes.limits import KernelNotChecked, UnknownFunction, UnknownValue
from pscdsl.typing.diagnostics import Diagnostic
from tests.typing.test_codes import example

PATH = os.path.realpath("program.py")
HEAD = """\
import math

import numpy as np
import pscdsl as psc
from pscdsl import f32, f64, i32


"""
KERNEL = '@psc.kernel\ndef f(x: f32["n"], y: f32["n"], a: f32, b: f32, k: i32["n"]):\n'


def fixed(text: str, *, unsafe: bool = True, only: str = "") -> Fixed:
    """The fixes of a program that is one file."""
    files = Files([PATH]).changed({PATH: text.encode()})

    def wanted(found: Sequence[Diagnostic], _: Mapping[str, str]) -> list[Diagnostic]:
        return [each for each in found if each.code.startswith(only)]

    return fix_all(files, [PATH], wanted, unsafe=unsafe)


@cache
def fixed_example(program: str) -> Fixed:
    """The fixes of an example, which several tests ask for."""
    return fixed(program)


def text_of(outcome: Fixed, before: str) -> str:
    return outcome.contents.get(PATH, before.encode()).decode()


def kernel(body: str) -> str:
    """A program with these statements in a kernel."""
    return HEAD + KERNEL + "".join(f"    {line}\n" for line in body.split("\n"))


SAFE = {
    "x[0] = 1.0\nreturn x": "x = psc.update(x, 0, 1.0)\nreturn x",
    "x[1:] = y[1:]\nreturn x": "x = psc.update(x, np.s_[1:], y[1:])\nreturn x",
    "x[0] += 1.0\nreturn x": 'x = psc.update(x, 0, 1.0, combine="add")\nreturn x',
    "x[k] += 1.0\nreturn x": "x = psc.update(x, k, x[k] + 1.0)\nreturn x",
    "x[0] -= a + b\nreturn x": "x = psc.update(x, 0, x[0] - (a + b))\nreturn x",
    "x[0] = a; x[-1] = b\nreturn x": "x = psc.update(x, 0, a); x = psc.update(x, -1, b)\nreturn x",
    "for i in range(1):\n    x[i] *= 2.0\nreturn x": (
        'for i in range(1):\n    x = psc.update(x, i, 2.0, combine="multiply")\nreturn x'
    ),
    "np.add.at(x, k, 1.0)\nreturn x": 'x = psc.update(x, k, 1.0, combine="add")\nreturn x',
    "x.sort()\nreturn x": "x = np.sort(x)\nreturn x",
    "x.fill(a)\nreturn x": "x = np.full_like(x, a)\nreturn x",
    "return (x > 0) & (y > 0) if False else x > 0 and y > 0": (
        "return (x > 0) & (y > 0) if False else (x > 0) & (y > 0)"
    ),
    "return np.where(x > 0 or not y > 0, x, y)": "return np.where((x > 0) | (~(y > 0)), x, y)",
    "return np.where(not x, x, y)": "return np.where(x == 0, x, y)",
    "return np.where(0 < x < 1, x, y)": "return np.where((0 < x) & (x < 1), x, y)",
    "return math.sin(x)": "return np.sin(x)",
    "return max(x)": "return np.max(x)",
    "return sorted(x)": "return np.sort(x)",
    "return np.stack([2 * v for v in list(x)])": "return np.stack([2 * v for v in x])",
    "x += 1\nreturn x": "x = x + 1\nreturn x",
}
UNSAFE = {
    "z = x\nz += 1\nreturn x * z": "z = x\nz = z + 1\nreturn x * z",
    "z = x\nx[0] = a\nreturn x * z": "z = x\nx = psc.update(x, 0, a)\nreturn x * z",
    "z = x[1:]\nx[:1] = a\nreturn z.sum() * x": (
        "z = x[1:]\nx = psc.update(x, np.s_[:1], a)\nreturn z.sum() * x"
    ),
    "z = x.T\nx[0] = a\nreturn x * z": "z = x.T\nx = psc.update(x, 0, a)\nreturn x * z",
    "z = (x, y)\nx[0] = a\nreturn z": "z = (x, y)\nx = psc.update(x, 0, a)\nreturn z",
    "z = np.reshape(x, (-1,))\nx[0] = a\nreturn x * z": (
        "z = np.reshape(x, (-1,))\nx = psc.update(x, 0, a)\nreturn x * z"
    ),
    "z = y\nz[0] = a\nreturn y * z": "z = y\nz = psc.update(z, 0, a)\nreturn y * z",
    "z = lambda: x\nx[0] = a\nreturn z()": "z = lambda: x\nx = psc.update(x, 0, a)\nreturn z()",
    "np.add(x, y, out=x)\nreturn x": "x = np.add(x, y)\nreturn x",
    "np.putmask(x, x > 0, a)\nreturn x": "x = np.where(x > 0, a, x)\nreturn x",
    "return x if x > y else y": "return np.where(x > y, x, y)",
    "if x > y:\n    z = x\nelse:\n    z = y\nreturn z": "z = np.where(x > y, x, y)\nreturn z",
    "z = x\nif x > y:\n    z = y\nreturn z": "z = x\nz = np.where(x > y, y, z)\nreturn z",
    "if x > y:\n    return x\nreturn y": "return np.where(x > y, x, y)",
    "return x * (k + 1)": "return x * (k + 1).astype(f32)",
    "return x * k": "return x * k.astype(f32)",
    "return k**-1": "return k.astype(f32)**-1",
    "return int(x + y)": "return (x + y).astype(int)",
    "return x.tolist()": "return x",
    "return np.sum(x, dtype=i32)": "return np.sum(x).astype(i32)",
    "return np.maxmum(x, y)": "return np.maximum(x, y)",
    "other = x\nreturn othr": "other = x\nreturn other",
    "print(x)\nreturn x": "return x",
    "print(x)  # to see it\nreturn x": "return x",
    "if True:\n    print(x)\nreturn x": "if True:\n    pass\nreturn x",
    "print(x); return x": "pass; return x",
    "z = x[:, None] * y[:-1]\nreturn (z - z.sum(1)) / np.linalg.norm(z, axis=-1)": (
        "z = x[:, None] * y[:-1]\n"
        "return (z - z.sum(1, keepdims=True)) / np.linalg.norm(z, axis=-1, keepdims=True)"
    ),
    "z = x[:, None] * y[:-1]\nm = z.sum(axis=1)\nreturn z - m": (
        "z = x[:, None] * y[:-1]\nm = z.sum(axis=1)\nreturn z - m[:, None]"
    ),
    "z = x[:, None] * y[:-1]\nreturn 2 * (z * z[1:].T)": (
        "z = x[:, None] * y[:-1]\nreturn 2 * (z @ z[1:].T)"
    ),
    "z = x[:, None] * y[:-1]\nreturn z.T + z * a": (
        "z = x[:, None] * y[:-1]\nreturn z.T + (z * a).T"
    ),
    "return x - np.pad(x[2:] + x[:-2], 1)": (
        "assert x.shape[0] >= 2\nreturn x - np.pad(x[2:] + x[:-2], 1)"
    ),
    "return np.stack([x, np.pad(x[3:-1], 2)])": (
        "assert x.shape[0] >= 4\nreturn np.stack([x, np.pad(x[3:-1], 2)])"
    ),
    "return psc.fori_loop(0, 3, lambda i, v: np.pad(v[2:] + v[:-2], 1), x)": (
        "assert x.shape[0] >= 2\n"
        "return psc.fori_loop(0, 3, lambda i, v: np.pad(v[2:] + v[:-2], 1), x)"
    ),
    "return k * k[k > 1].min()": ("return k * np.min(np.where(k > 1, k, np.iinfo(k.dtype).max))"),
    "return np.diff(k, prepend=0)": "return np.diff(k, prepend=np.int32(0))",
    "return np.append(k, -3)": "return np.append(k, np.int32(-3))",
    "return x * np.mean(x, axes=0)": "return x * np.mean(x, axis=0)",
    "z = 2 * x\nz += x[:, None]\nreturn z": "z = 2 * x\nz = z + x[:, None]\nreturn z",
    "return psc.cond(a > b, x + 1, x - 1)": "return psc.cond(a > b, lambda: x + 1, lambda: x - 1)",
    "return np.zeros(x.shape[0] - 2)": ("assert x.shape[0] >= 2\nreturn np.zeros(x.shape[0] - 2)"),
    "return x[3]": "assert x.shape[0] >= 4\nreturn x[3]",
    "return x.reshape(2, -1)": "assert x.shape[0] % 2 == 0\nreturn x.reshape(2, -1)",
    '"""Words."""\n\n# Why.\nreturn x[3]': (
        '"""Words."""\n\n# Why.\nassert x.shape[0] >= 4\nreturn x[3]'
    ),
    "return x[3] + x[5] + x[4]": "assert x.shape[0] >= 6\nreturn x[3] + x[5] + x[4]",
}


@pytest.mark.parametrize("before", SAFE)
def test_safe_fixes(before: str) -> None:
    program = kernel(before)
    outcome = fixed(program, unsafe=False)
    assert text_of(outcome, program) == kernel(SAFE[before])
    assert not outcome.result.diagnostics


@pytest.mark.parametrize("before", UNSAFE)
def test_unsafe_fixes_are_made_only_if_asked_for(before: str) -> None:
    program = kernel(before)
    assert not fixed(program, unsafe=False).contents
    outcome = fixed(program)
    assert text_of(outcome, program) == kernel(UNSAFE[before])
    assert not outcome.result.diagnostics


ELSEWHERE = {
    "return jnp.exp(x) + jnp.pi": "return np.exp(x) + np.pi",
    "return jax.vmap(lambda v: jnp.linalg.norm(v))(x[:, None])": (
        "return psc.vmap(lambda v: np.linalg.norm(v))(x[:, None])"
    ),
    "return lax.scan(lambda c, v: (c + v, c), jnp.float32(0), x)[1]": (
        "return psc.scan(lambda c, v: (c + v, c), np.float32(0), x)[1]"
    ),
    "return lax.max(x, y)": "return np.maximum(x, y)",
    "return scipy.linalg.pinv(x[:, None] + y) @ x": "return np.linalg.pinv(x[:, None] + y) @ x",
    "return jax.random.normal(jax.random.PRNGKey(0), x.shape)": (
        "return psc.random.normal(psc.random.key(0), x.shape)"
    ),
    "return x.at[0].set(a)": "return psc.update(x, 0, a)",
    "return x.at[0].set(a).at[1:].mul(b)": (
        'return psc.update(psc.update(x, 0, a), np.s_[1:], b, combine="multiply")'
    ),
    "return x.at[k].max(y)": 'return psc.update(x, k, y, combine="maximum")',
    "return jax.jacobian(jax.nn.tanh)(x)": "return psc.jacrev(np.tanh)(x)",
    "return jax.remat(lambda v: lax.reshape(v, (v.size,)))(x)": (
        "return psc.checkpoint(lambda v: np.reshape(v, (v.size,)))(x)"
    ),
    "return jax.nn.softmax(x[:, None] + y, axis=0)": (
        "return psc.special.softmax(x[:, None] + y, axis=0)"
    ),
    "return jax.nn.log_softmax(x[:, None] + y, 0)": (
        "return psc.special.log_softmax(x[:, None] + y, 0)"
    ),
    "return ravel_pytree((x, y))[0]": "return psc.tree.ravel((x, y))[0]",
    "return tree_reduce(lambda s, v: s + v.sum(), (x, y), a)": (
        "return psc.tree.reduce(lambda s, v: s + v.sum(), (x, y), a)"
    ),
    "return np.erf(x) + np.expit(y)": "return psc.special.erf(x) + psc.special.expit(y)",
    "return x.unsqueeze(-1).clamp(0, 1).exp()": (
        "return np.exp(np.clip(np.expand_dims(x, -1), 0, 1))"
    ),
}
"""What users of JAX and SciPy write."""


@pytest.mark.parametrize("before", ELSEWHERE)
def test_names_of_other_libraries(before: str) -> None:
    head = "import jax\nimport jax.numpy as jnp\nimport scipy.linalg\nfrom jax import lax\n"
    head += "from jax.flatten_util import ravel_pytree\nfrom jax.tree_util import tree_reduce\n"
    outcome = fixed(head + kernel(before))
    assert text_of(outcome, "") == head + kernel(ELSEWHERE[before])
    assert not outcome.result.diagnostics


ELSEWHERE_OUT_OF_RANGE = (
    "return x.at[k].add(y)",
    "return jax.lax.dynamic_slice(x, (k[0],), (1,))",
    "return jax.lax.dynamic_update_slice(x, y, (k[0],))",
    "return jnp.take(x, k)",
    "return jnp.take_along_axis(x, k, 0)",
    "return jax.ops.segment_sum(x, k, 8)",
)


@pytest.mark.parametrize("body", ELSEWHERE_OUT_OF_RANGE)
def test_what_is_clamped_here_alone_is_said(body: str) -> None:
    head = "import jax\nimport jax.numpy as jnp\n"
    text = head + kernel(f"assert len(x) >= 1\n{body}")
    result = check_source(text, "elsewhere.py")
    assert any("clamp" in (each.help() or "") for each in result.diagnostics)


@pytest.mark.parametrize(
    ("body", "caveat"),
    [
        ("return jax.lax.dynamic_slice(x, (k[0],), (1,))", "negative start"),
        ("return x.at[k].add(y)", "out of range"),
        ("return jax.random.permutation(jax.random.key(0), x)", "other numbers"),
        ("return x.at[0].set(a)", ""),
        ("return jnp.exp(x)", ""),
    ],
)
def test_what_means_something_else_after_a_fix_is_said(body: str, caveat: str) -> None:
    head = "import jax\nimport jax.numpy as jnp\n"
    said = " ".join(caveats(fixed(head + kernel(body))))
    assert caveat in said
    assert bool(said) == bool(caveat)


UNNAMED = {
    "return jnp.exp(x) * y[:3]": "return np.exp(x) * y[:3]",  # errors elsewhere come to light
    "return jnp.exp(x) + jnp.log(x)[:, None] + y[1:]": (
        "return np.exp(x) + np.log(x)[:, None] + y[1:]"
    ),
    "z = jnp.exp(x)\nfor i in range(3):\n    print(z)\nreturn z.foo(jnp.tanh(x) + jnp.ones(3))": (
        "z = np.exp(x)\nfor i in range(3):\n    print(z)\nreturn z.foo(np.tanh(x) + np.ones(3))"
    ),
}


@pytest.mark.parametrize("before", UNNAMED)
def test_names_are_replaced_whatever_they_hid(before: str) -> None:
    head = "import jax.numpy as jnp\n"
    outcome = fixed(head + kernel(before), only="PSC91")
    assert text_of(outcome, "") == head + kernel(UNNAMED[before])
    assert outcome.result.diagnostics


def test_a_name_is_not_replaced_where_it_takes_other_arguments() -> None:
    program = "import jax.numpy as jnp\n" + kernel("return jnp.sum(x, where=x > 0, promote=1)")
    assert not fixed(program).contents


IMPORTS = {
    "import jax.numpy as np": "import numpy as np",
    "import jax.numpy as np, math": "import numpy as np, math",
    "from jax import numpy as np": "import numpy as np",
}


@pytest.mark.parametrize("before", IMPORTS)
def test_the_numpy_of_jax_is_imported_from_elsewhere(before: str) -> None:
    program = (
        "\nimport pscdsl as psc\nfrom pscdsl import f32\n\n\n"
        '@psc.kernel\ndef f(x: f32["n"]) -> f32:\n    return np.sum(np.exp(x)) + np.pi\n'
    )
    outcome = fixed(before + program)
    assert text_of(outcome, "") == IMPORTS[before] + program
    assert not outcome.result.diagnostics
    assert "outside of kernels" in " ".join(caveats(outcome))


@pytest.mark.parametrize(
    "decorator",
    ["jax.jit", "jit", "partial(jit, static_argnums=1)", "njit", "nb.njit(cache=True)"],
)
@pytest.mark.parametrize("kernel", [False, True])
def test_a_decorator_that_compiles_is_left_out(decorator: str, kernel: bool) -> None:
    head = "from functools import partial\n\nimport jax\nimport numba as nb\n"
    head += "from jax import jit\nfrom numba import njit\nimport pscdsl as psc\n"
    head += "from pscdsl import f32\n\n\n"
    helper = "def helper(x):\n    return x * 2\n\n\n" if not kernel else ""
    body = '@psc.kernel\n{}def f(x: f32["n"]) -> f32["n"]:\n    return {}\n'
    wrong = f"@{decorator}\n"
    if kernel:
        program, right = head + body.format(wrong, "x"), head + body.format("", "x")
    else:
        rest = helper + body.format("", "helper(x)")
        program, right = head + wrong + rest, head + rest
    (found,) = check_source(program, "program.py").diagnostics
    left_out = "leave it out: a kernel is compiled as a whole"
    if not kernel:
        left_out = "leave the decorator out: a kernel compiles the functions that it calls"
    assert found.help() == left_out
    assert text_of(fixed(program), "") == right


COMPILED = {
    "return jax.jit(np.exp)(x)": "return np.exp(x)",
    "return jax.jit(lambda v: v + 1, inline=True)(x)": "return (lambda v: v + 1)(x)",
    "@jax.jit\ndef g(v):\n    return v\nreturn g(x)": "def g(v):\n    return v\nreturn g(x)",
}


@pytest.mark.parametrize("before", COMPILED)
def test_a_call_that_compiles_is_left_out(before: str) -> None:
    outcome = fixed("import jax\n" + kernel(before))
    assert text_of(outcome, "") == "import jax\n" + kernel(COMPILED[before])
    assert not outcome.result.diagnostics


@pytest.mark.parametrize(("name", "here"), [("relu", "relu"), ("gelu", "gelu_tanh")])
def test_an_activation_is_imported(name: str, here: str) -> None:
    program = "import jax\nimport pscdsl as psc\nfrom pscdsl import f32\n\n\n"
    program += f'@psc.kernel\ndef f(x: f32["n"]) -> f32["n"]:\n    return jax.nn.{name}(x)\n'
    outcome = fixed(program)
    assert f"from pscdsl.stdlib.activations import {here}\n" in text_of(outcome, "")
    assert f"    return {here}(x)\n" in text_of(outcome, "")


@pytest.mark.parametrize("name", RENAMED)
def test_what_another_library_has_is_here(name: str) -> None:
    here = equivalent(name)
    module, _, function = here.rpartition(".")
    assert here in MEANINGS or hasattr(importlib.import_module(module), function)


LEFT = (
    "x[0] = y[0] = 1.0\nreturn x",
    "return x and y",  # `&` has no meaning for floats
    "while a > 0:\n    a = a - 1\nreturn a",
    "if a > 0:\n    z = x\nelif b > 0:\n    z = y\nelse:\n    z = x\nreturn z",
    "if a > 0:\n    # Why.\n    z = x\nelse:\n    z = y\nreturn z",
    "return x if a > 0 else (x, y)",  # nothing that both can be
    "return np.stack(x, y, print(x))",
    "def g():\n    x[0] = a\n    return x\nreturn g()",  # not the function's own name
)


@pytest.mark.parametrize("body", LEFT)
def test_what_has_no_fix_is_left_alone(body: str) -> None:
    program = kernel(body)
    outcome = fixed(program)
    assert not outcome.contents
    assert [d.code for d in outcome.result.diagnostics] == codes(program)


def codes(program: str) -> list[str]:
    return [each.code for each in check_source(program, "program.py").diagnostics]


FIXABLE = {*BUILDERS} - {NotCallable, KernelNotChecked, UnknownFunction, UnknownName, UnknownValue}
CODES = {"PSC305", "PSC306", "PSC314", "PSC318", "PSC320", "PSC333"}


@pytest.mark.parametrize("kind", all_kinds(), ids=lambda kind: kind.code)
def test_an_example_loses_a_finding_that_has_a_fix(kind: type[Diagnostic]) -> None:
    before = example(kind)
    has_fixes = any(each.fixes for each in check_source(before, "program.py").diagnostics)
    assert has_fixes or (kind not in FIXABLE and kind.code not in CODES)
    if before and has_fixes:
        outcome = fixed_example(before)
        assert kind.code not in {each.code for each in outcome.result.diagnostics}
        assert text_of(outcome, before) != before


@pytest.mark.parametrize("kind", all_kinds(), ids=lambda kind: kind.code)
def test_what_was_fixed_stays_as_it_is(kind: type[Diagnostic]) -> None:
    once = fixed_example(example(kind))
    again = fixed(text_of(once, example(kind))) if once.contents else once
    assert not again.contents
    assert not again.made


@pytest.mark.parametrize(
    "helper",
    [
        "def put(v):\n    v[0] = 1.0\n    return v\n",
        "def put(v):\n    v.sort()\n    return v\n",
    ],
)
def test_what_a_helper_does_to_its_arguments_is_seen_by_its_caller(helper: str) -> None:
    program = HEAD + helper + "\n\n" + KERNEL + "    return put(x) + x\n"
    assert not fixed(program, unsafe=False).contents
    assert fixed(program).contents


def test_what_a_helper_does_to_its_own_needs_no_fix() -> None:
    helper = "def put(v):\n    w = v + 1\n    w[0] = 1.0\n    return w\n"
    program = HEAD + helper + "\n\n" + KERNEL + "    return put(x) + x\n"
    assert not codes(program)


def test_an_import_is_added_where_a_fix_needs_one() -> None:
    head = '"""Words."""\n\nfrom pscdsl import f32, kernel\n'
    body = (
        '\n\n@kernel\ndef f(x: f32["n"], y: f32["n"]) -> f32["n"]:\n'
        "    x.sort()\n    y[0] = 1.0\n    return x * y\n"
    )
    program = head + body
    after = text_of(fixed(program), program)
    assert after.startswith(head)
    added = after[len(head) :].split("\n\n\n")[0].split("\n")
    assert sorted(added) == ["import numpy as np", "import pscdsl as psc"]
    assert not codes(after)


def test_no_import_is_added_where_its_name_is_taken() -> None:
    program = (
        "from pscdsl import f32, kernel\n\nnp = 3\n\n\n"
        '@kernel\ndef f(x: f32["n"]) -> f32["n"]:\n    x.sort()\n    return x\n'
    )
    after = text_of(fixed(program), program)
    assert "import numpy" not in after
    assert '@kernel(writes="x")\ndef f(x' in after, "it can be declared"


@pytest.mark.parametrize(
    ("options", "after"),
    [
        ("", 'writes="x"'),
        ("()", 'writes="x"'),
        ('(donate="k")', 'donate="k", writes="x"'),
        ('(writes="y")', 'writes=("y", "x")'),
        ('(writes=["y"], donate="k")', 'writes=("y", "x"), donate="k"'),
    ],
)
def test_a_store_into_a_parameter_is_declared(options: str, after: str) -> None:
    body = "a, x[0] = 1.0, 2.0\nreturn x"
    if "y" in options:
        body = f"y += x\n{body}"
    program = kernel(body).replace("@psc.kernel", f"@psc.kernel{options}")
    assert f"@psc.kernel({after})" in text_of(fixed(program), program)


def test_names_of_modules_are_those_of_the_file() -> None:
    program = kernel("x.sort()\nx[1:] = a\nreturn x").replace("np\n", "N\n").replace("psc", "P")
    program = program.replace("P\n", "P\n").replace("import Pdsl as", "import pscdsl as")
    program = program.replace("from Pdsl", "from pscdsl")
    after = text_of(fixed(program), program)
    assert "x = N.sort(x)" in after
    assert "x = P.update(x, N.s_[1:], a)" in after


def test_a_precondition_goes_to_the_kernel_that_calls_the_helper() -> None:
    program = HEAD + "def helper(v):\n    return v[3]\n\n\n" + KERNEL + "    return helper(x) + a\n"
    after = text_of(fixed(program), program)
    assert "def helper(v):\n    return v[3]\n" in after
    assert f"{KERNEL}    assert x.shape[0] >= 4\n    return helper(x) + a\n" in after


def test_callers_get_the_preconditions_of_what_they_call() -> None:
    program = HEAD + (
        '@psc.kernel\ndef g(u: f32["m"]):\n    return u[3]\n\n\n'
        '@psc.kernel\ndef h(x: f32["n"]):\n    return g(x)\n'
    )
    after = text_of(fixed(program), program)
    assert "assert u.shape[0] >= 4" in after
    assert "assert x.shape[0] >= 4" in after
    assert not codes(after)


def test_a_precondition_that_a_caller_breaks_is_not_added() -> None:
    program = HEAD + (
        '@psc.kernel\ndef g(u: f32["m"]):\n    return u[3]\n\n\n'
        '@psc.kernel\ndef h(x: f32["2"]):\n    return g(x)\n'
    )
    assert not fixed(program).contents


def test_a_cast_that_makes_another_error_gives_way_to_the_other_cast() -> None:
    program = HEAD + (
        '@psc.kernel\ndef f(x: f32["n"], y: f64["n"]) -> f32["n"]:\n    return x + y\n'
    )
    assert "return x + y.astype(f32)" in text_of(fixed(program), program)


def test_only_what_is_wanted_is_fixed() -> None:
    program = kernel("x.sort()\nreturn np.where(0 < x < 1, x, y)")
    outcome = fixed(program, only="PSC121")
    assert text_of(outcome, program) == kernel("x.sort()\nreturn np.where((0 < x) & (x < 1), x, y)")


def test_lines_end_where_python_ends_them() -> None:
    text = "s = '\u2028 \x0c'\nt = 'ä'; f(x)\n"
    source = Source("a.py", text)
    assert re.findall(r"\d+:\d+", str(source.span(source.tree.body[2]))) == ["2:10"]
