"""Kernels that a module makes of others by a transformation are checked as those with a `def`."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f64
from pscdsl._src.checker.check import check_source
from pscdsl._src.checker.project import CheckOptions, check_project
from pscdsl._src.checker.report import terminal
from pscdsl._src.checker.results import CheckResult, KernelReport
from pscdsl._src.frontend.modules.files import Files, files_below
from pscdsl._src.frontend.modules.kernels import find_kernels
from pscdsl._src.frontend.modules.scope import Project
from pscdsl._src.frontend.text.display import Sources
from tests.support.projects import module_of

HEAD = """\
import numpy as np
import pscdsl as psc
from pscdsl import Float, f32, i32


class Params(psc.Record):
    w: f32["d"]
    b: f32


@psc.kernel
def loss(p: Params, x: f32["n d"], y: f32["n"]) -> f32:
    return np.mean((x @ p.w + p.b - y) ** 2)


@psc.kernel
def predict(w: f32["d"], x: f32["n d"]) -> f32["n"]:
    return np.tanh(x @ w)


@psc.kernel
def root(a: f32) -> f32:
    return psc.while_loop(lambda x: np.abs(x * x - a) > 1e-6, lambda x: (x + a / x) / 2, a)


@psc.kernel
def norm(x: Float["*s"]) -> Float[""]:
    return np.sqrt(np.sum(x * x))


"""
FIRST = HEAD.count("\n") + 1


def check(line: str) -> tuple[CheckResult, dict[str, KernelReport]]:
    """Check the module with some lines more; its kernels by name."""
    result = check_source(HEAD + line + "\n", "made.py")
    return result, {each.name: each for each in result.kernels}


SIGNATURES = {
    "made = psc.grad(loss)": "(p: Params, x: f32[n d], y: f32[n]) -> Params",
    "made = psc.grad(loss, argnums=(0, -1))": (
        "(p: Params, x: f32[n d], y: f32[n]) -> tuple[Params, f32[n]]"
    ),
    "made = psc.value_and_grad(loss, 1)": (
        "(p: Params, x: f32[n d], y: f32[n]) -> tuple[f32, f32[n d]]"
    ),
    "made = psc.vmap(psc.value_and_grad(loss), in_axes=(None, 0, 0))": (
        "(p: Params, x: f32[batch n d], y: f32[batch n]) -> "
        "tuple[f32[batch], Params(w: f32[batch d], b: f32[batch])]"
    ),
    "made = psc.vmap(predict, (1, None), out_axes=-1)": (
        "(w: f32[d batch], x: f32[n d]) -> f32[n batch]"
    ),
    "made = psc.jacrev(predict, (0, 1))": (
        "(w: f32[d], x: f32[n d]) -> tuple[f32[n d], f32[n n d]]"
    ),
    "made = psc.jacfwd(root)": "(a: f32) -> f32",
    "made = psc.hessian(loss)": (
        "(p: Params, x: f32[n d], y: f32[n]) -> Params("
        "w: Params(w: f32[d d], b: f32[d]), b: Params(w: f32[d], b: f32))"
    ),
    "made = psc.checkpoint(predict)": "(w: f32[d], x: f32[n d]) -> f32[n]",
    "made = psc.grad(norm)": "(x: Float[*s]) -> Float[*s]",
    "made: object = psc.kernel(psc.grad(norm))": "(x: Float[*s]) -> Float[*s]",
    "made, other = psc.jacfwd(predict), psc.grad(loss)": ("(w: f32[d], x: f32[n d]) -> f32[n d]"),
}


@pytest.mark.parametrize(("line", "signature"), SIGNATURES.items())
def test_what_is_made_is_reported_like_a_kernel(line: str, signature: str) -> None:
    result, kernels = check(line)
    assert result.diagnostics == ()
    made = kernels["made"]
    assert (made.status, made.line, made.column) == ("ok", FIRST, 1)
    assert made.signature.split("  (")[0] == signature


def test_a_typed_function_needs_no_decorator() -> None:
    lines = "def square(x: f32) -> f32:\n    return x * x\n\n\nslope = psc.grad(square)"
    assert check(lines)[1]["slope"].signature == "(x: f32) -> f32"


def test_what_is_made_of_helpers_is_checked_where_it_is_used() -> None:
    lines = """\
def square(x):
    return x * x


slope = psc.grad(square)
cubic = psc.grad(lambda x: x * x * x)
value = psc.grad(norm)(np.ones(3, np.float32))
out, back = psc.vjp(root, 2.0)


@psc.kernel
def use(x: f32) -> f32:
    return slope(x) + cubic(x)"""
    result, kernels = check(lines)
    assert result.diagnostics == ()
    assert list(kernels)[-1] == "use"
    assert len(kernels) == 5


def test_decorators_make_kernels_of_kernels() -> None:
    lines = '@psc.vmap\n@psc.kernel\ndef scaled(x: f32["n"]) -> f32["n"]:\n    return x / np.max(x)'
    result, kernels = check(lines)
    assert result.diagnostics == ()
    made = kernels["scaled"]
    assert made.signature == "(x: f32[batch n]) -> f32[batch n]"
    assert (made.line, made.column) == (FIRST + 2, 5)


def test_a_kernel_with_a_rule_of_its_own_is_checked() -> None:
    lines = """\
@psc.custom_jvp
@psc.kernel
def soft(x: f32) -> f32:
    return np.log1p(np.exp(x)) + unknown


@soft.defjvp
def rule(primals, tangents):
    return soft(primals[0]), tangents[0] / (1 + np.exp(-primals[0]))"""
    result, kernels = check(lines)
    assert [(d.code, d.span.line) for d in result.diagnostics] == [("PSC102", FIRST + 3)]
    assert kernels["soft"].status == "error"


FINDINGS = {
    "made = psc.grad(predict)": ("PSC510", FIRST, 8),
    "made = psc.grad(loss, argnums=3)": ("PSC514", FIRST, 8),
    "made = psc.grad(loss, argnums=unknown)": ("PSC102", FIRST, 31),
    "made = psc.vmap(loss, in_axes=(0, 0))": ("PSC515", FIRST, 8),
    "made = psc.vmap(loss, in_axes=(0, 0, 0, 0))": ("PSC515", FIRST, 8),
    "made = psc.vmap(predict, out_axes=None)": ("PSC515", FIRST, 8),
    "made = psc.grad(3)": ("PSC111", FIRST, 8),
    "made = psc.kernel(psc.grad(lambda x: x * x))": ("PSC105", FIRST, 35),
    "made = psc.grad(root)": ("PSC512", 23, 12),
    "made = psc.grad(psc.grad(root))": ("PSC512", 23, 12),
}


@pytest.mark.parametrize(("line", "place"), FINDINGS.items())
def test_findings_stand_at_the_assignment_or_in_the_function(
    line: str, place: tuple[str, int, int]
) -> None:
    result, kernels = check(line)
    assert [(d.code, d.span.line, d.span.column) for d in result.diagnostics] == [place]
    made = kernels.get("made")
    assert made is None or made.status == "error"


def test_a_finding_in_the_function_says_where_the_derivative_is_made() -> None:
    result, _ = check("made = psc.vmap(psc.grad(root))")
    (finding,) = result.diagnostics
    assert [(each.text, each.span.line) for each in finding.labels] == [
        ("`psc.vmap(psc.grad(root))` is made here", FIRST)
    ]


def test_findings_in_a_rule_are_told() -> None:
    lines = """\
@psc.custom_vjp
def f(x: f32["n"]) -> f32:
    return np.sum(x * x)


def backward(saved, ct):
    return np.ones(3) * saved * ct


f.defvjp(lambda x: (np.sum(x * x), 2 * x), backward)
made = psc.grad(f)"""
    result, kernels = check(lines)
    assert [(d.code, d.span.line) for d in result.diagnostics] == [("PSC300", FIRST + 6)]
    assert kernels["made"].status == "error"


def test_of_a_kernel_with_errors_nothing_is_said_twice() -> None:
    lines = (
        '@psc.kernel\ndef f(x: f32["n"]) -> f32:\n    return np.sum(x) + y\n\n\nmade = psc.grad(f)'
    )
    result, kernels = check(lines)
    assert [d.code for d in result.diagnostics] == ["PSC102"]
    assert kernels["made"].status == "error"


def test_what_is_made_of_something_unknown_is_not_checked() -> None:
    result, kernels = check("from elsewhere import energy\n\nforce = psc.grad(energy)")
    assert kernels["force"].status == "unchecked"
    assert [(d.code, d.span.line) for d in result.diagnostics] == [("PSC903", FIRST + 2)]
    assert "nothing is known of `elsewhere.energy`" in result.diagnostics[0].message()


def test_what_is_made_of_a_helper_is_the_same_once_it_is_loaded(tmp_path: Path) -> None:
    lines = """\
def square(x):
    return x * x


slope = psc.grad(square)
total = psc.vmap(np.sum)


@psc.kernel
def use(x: f32["n"]) -> f32["n"]:
    return total(psc.vmap(slope)(x)[:, None])


@psc.kernel
def twice(x: f32) -> f32:
    return use(np.stack([x, x]))[1]


made = psc.grad(twice)
again = psc.kernel(psc.grad(made))
"""
    path = tmp_path / "made_of_helpers.py"
    path.write_text(HEAD + lines, encoding="utf-8")
    module = module_of(path)
    loaded, read = module, Project(files=Files([str(path)])).at(str(path))
    for name, static in find_kernels(read, []):
        choices = static.signature.choices() or []
        definition = getattr(loaded, name).definition
        texts = [str(static.instance(choice)) for choice in choices]
        if name in ("made", "again"):  # at run time nobody tells them their name
            texts = [re.sub(r"^\w+", definition.name, each) for each in texts]
        assert texts == [str(definition.instance(choice)) for choice in choices]
    with pytest.raises(psc.CheckError, match="PSC105"):
        module.slope(1.0)


PROJECT = {
    "model.py": HEAD,
    "train.py": (
        "import pscdsl as psc\nfrom model import loss, predict\n\n"
        "step = psc.value_and_grad(loss)\nwrong = psc.grad(predict)\n"
    ),
    "use.py": (
        "import pscdsl as psc\nfrom pscdsl import f32\nimport train\nfrom model import Params\n\n\n"
        '@psc.kernel\ndef twice(p: Params, x: f32["n d"], y: f32["n"]) -> Params:\n'
        "    value, slope = train.step(p, x, y)\n"
        "    return Params(slope.w * 2, slope.b * 2 * value)\n"
    ),
}


def shown(result: CheckResult) -> str:
    """Everything that is reported."""
    return terminal.render_text(result.diagnostics, Sources()) + repr(result.kernels)


def test_from_other_files_with_a_cache_and_in_several_processes(tmp_path: Path) -> None:
    folder, cache = tmp_path / "project", str(tmp_path / "cache")
    folder.mkdir()
    for name, content in PROJECT.items():
        (folder / name).write_text(content, encoding="utf-8")
    plain = check_project(files_below([folder]), CheckOptions())
    assert [(d.code, Path(d.span.path).name, d.span.line) for d in plain.diagnostics] == [
        ("PSC510", "train.py", 5)
    ]
    assert {k.name for k in plain.kernels if k.path.endswith("train.py")} == {"step", "wrong"}
    for options in (CheckOptions(cache), CheckOptions(cache), CheckOptions(jobs=2)):
        assert shown(check_project(files_below([folder]), options)) == shown(plain)
    (folder / "model.py").write_text(HEAD.replace("np.tanh(x @ w)", "np.sum(x @ w)"), "utf-8")
    again = check_project(files_below([folder]), CheckOptions(cache))
    assert [d.code for d in again.diagnostics] == ["PSC303"]
    assert shown(again) == shown(check_project(files_below([folder]), CheckOptions()))


def test_the_same_call_in_a_loop_is_compiled_once() -> None:
    made = [psc.grad(product, argnums=(0, 1)) for _ in range(3)]
    assert made[0] is made[1] is made[2]
    assert made[0] is not psc.grad(product, argnums=(0, 1))
    assert len({id(psc.grad(product, argnums=i)) for i in (0, 1)}) == 2
    axes = [psc.vmap(product, in_axes=[None, 0]) for _ in range(2)]  # what cannot be hashed
    np.testing.assert_allclose(axes[1](2.0, np.ones(3)), [2, 2, 2])


def test_what_decorators_copy_is_not_taken_for_ones_own() -> None:
    def plain(x: f64) -> f64:
        return x * x

    psc.grad(plain)(1.0)

    @functools.wraps(plain)
    def cube(x: f64) -> f64:
        return x * x * x

    vars(cube).pop("__wrapped__")
    np.testing.assert_allclose([psc.grad(f)(2.0) for f in (plain, cube)], [4, 12])


def test_findings_point_to_the_call_that_made_the_kernel() -> None:
    with pytest.raises(psc.CheckError) as caught:
        psc.vmap(psc.grad(residuals))(np.ones((2, 3)))
    text = str(caught.value)
    assert "PSC510" in text
    assert re.search(r"psc\.vmap\(psc\.grad\(residuals\)\)", text)


def test_forward_derivatives_of_loops_without_a_bound_are_functions() -> None:
    np.testing.assert_allclose(psc.jacfwd(psc.jacfwd(root))(4.0), -(4**-1.5) / 4)
    value, slope = psc.linearize(root, 4.0)
    np.testing.assert_allclose((value, slope(1.0)), (2, 0.25))
    for wrong in (psc.grad(root), psc.hessian(root), psc.grad(psc.jacfwd(root))):
        with pytest.raises(psc.CheckError, match="PSC512"):
            wrong(4.0)
    with pytest.raises(psc.CheckError, match="PSC512"):
        psc.vjp(root, 4.0)


@psc.kernel
def root(a: f64) -> f64:
    return psc.while_loop(lambda x: np.abs(x * x - a) > 1e-12, lambda x: (x + a / x) / 2, a)


@psc.kernel
def residuals(x: f64["n"]) -> f64["n"]:
    return x - 1


@psc.kernel
def product(x: f64, y: f64) -> f64:
    return x * y
