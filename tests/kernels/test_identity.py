# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportPrivateUsage=false
# pyright: reportIncompatibleMethodOverride=false
"""One program is never another: not by where it stands, nor by what was read before."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.checker.project import CheckOptions, check_project
from pscdsl._src.frontend.modules.files import files_below
from pscdsl._src.frontend.modules.live import trace_of
from pscdsl._src.frontend.modules.traces import CAPTURED, recorded
from pscdsl._src.frontend.text.code_texts import content, same
from pscdsl._src.kernels.kernel import Kernel
from pscdsl.stdlib import activations, kalman, losses, normalization
from tests.identity.trials import Figures, one_process, pairs

ROOT = Path(__file__).parents[2]
X = np.arange(1, 4, dtype=np.float32)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store on disk of each test's own."""
    monkeypatch.setenv("PSCDSL_CACHE", str(tmp_path / "cache"))


def make(act: Callable[[Any], Any]) -> Any:
    """A kernel of a function."""

    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return act(x)

    return f


def loss(act: Callable[[Any], Any]) -> Any:
    """The same of one number."""

    @psc.kernel
    def f(x: f32) -> f32:
        return act(x)

    return f


class Held(NamedTuple):
    """Something that holds a function."""

    act: Callable[[Any], Any]


def given(act: Callable[[Any], Any]) -> Any:
    """A function that has another one for its default."""

    def f(x: Any, act: Any = act) -> Any:
        return act(x)

    return f


def ruled(rule: Callable[[Any], Any]) -> Any:
    """A function whose tangent a rule gives."""

    @psc.custom_jvp
    def h(x: Any) -> Any:
        return x

    h.defjvp(lambda primals, tangents: (primals[0], rule(tangents[0])))
    return h


def mapped(act: Callable[[Any], Any]) -> Any:
    """A kernel whose loop has a function for its body."""

    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return psc.map(act, psc.fori_loop(0, 1, lambda i, v: act(v), x))

    return f


# fmt: off
ON_ONE_LINE: dict[str, tuple[Any, Any]] = {
    "calls": (make(lambda v: v * 2), make(lambda v: v * 3)),
    "a list": tuple([make(g) for g in (lambda v: v * 2, lambda v: v * 3)]),
    "other names": (make(lambda v: v * 2), make(lambda w: w * 3)),
    "partials": tuple([make(functools.partial(lambda s, v: v * s, s)) for s in (2, 3)]),
    "partials of two": (make(functools.partial(lambda v: v * 2)), make(functools.partial(lambda v: v * 3))),  # noqa: E501
    "defaults": (make(given(lambda v: v * 2)), make(given(lambda v: v * 3))),
    "defaults of their own": (make(lambda v, s=2: v * s), make(lambda v, s=3: v * s)),  # type: ignore[misc]
    "fields": (make(Held(lambda v: v * 2).act), make(Held(lambda v: v * 3).act)),
    "conditions": tuple([make((lambda v: v * 2) if first else (lambda v: v * 3)) for first in (True, False)]),  # noqa: E501
    "nested": (make(lambda v: (lambda u: u * 2)(v)), make(lambda v: (lambda u: u * 3)(v))),
    "inner ones": (make((lambda: lambda v: v * 2)()), make((lambda: lambda v: v * 3)())),
    "gradients": (psc.vmap(psc.grad(loss(lambda v: v * v))), psc.vmap(psc.grad(loss(lambda v: v * v * 1.5)))),  # noqa: E501
    "batches": (psc.vmap(loss(lambda v: v * 2)), psc.vmap(loss(lambda v: v * 3))),
    "loops": (mapped(lambda v: v * 2 ** 0.5), mapped(lambda v: v * 3 ** 0.5)),
}
ALONE = psc.kernel(lambda: np.float32(1)), psc.kernel(lambda: np.float32(2))
RULES = psc.grad(loss(ruled(lambda t: t * 2))), psc.grad(loss(ruled(lambda t: t * 3)))
# fmt: on


@pytest.mark.parametrize("form", ON_ONE_LINE)
def test_functions_of_one_line_are_told_apart(form: str) -> None:
    one, other = ON_ONE_LINE[form]
    np.testing.assert_allclose(np.asarray(one(X)), X * 2, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(other(X)), X * 3, rtol=1e-6)


def test_kernels_and_rules_of_one_line_are_told_apart() -> None:
    assert [float(each()) for each in ALONE] == [1, 2]
    assert [float(each(np.float32(1))) for each in RULES] == [2, 3]


def test_kernels_that_differ_in_options_are_told_apart() -> None:
    def divided_twice(x: f32["n"], a: f32) -> f32["n"]:
        return x / a / a

    x, a = np.full(3, 1e30, np.float32), np.float32(1e25)
    for _ in range(2):  # compiled, and from the disk
        made = [psc.kernel(divided_twice, fast_math=each) for each in (None, True, False)]
        made.append(psc.kernel(made[1], fast_math=False))
        # With `fast_math`, `a * a` is computed first, which is infinite.
        assert [float(np.asarray(each(x, a))[0]) > 0 for each in made] == [True, False, True, True]


@pytest.mark.parametrize("act", [lambda v: v * 2, lambda v: v * 3])
def test_parameters_of_tests_are_told_apart(act: Any) -> None:
    np.testing.assert_array_equal(np.asarray(make(act)(X)), act(X))


def test_a_lambda_in_a_lambda_is_not_the_one_around_it() -> None:
    outer: Any = lambda: lambda v: v + 1  # noqa: E731
    np.testing.assert_array_equal(np.asarray(make(lambda v: outer()(v))(X)), X + 1)
    with pytest.raises(psc.CheckError, match="parameter `v` of kernel `<lambda>` has no type"):
        (lambda: psc.vmap(lambda v: v + 1)(X))()


def test_kernels_with_assertions_are_found_in_modules_of_tests() -> None:
    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        assert x.ndim == 1, "pytest compiles this in a way of its own"
        return x + 1

    np.testing.assert_array_equal(np.asarray(f(X)), X + 1)


PROGRAM = """\
import functools, json, os, sys
from typing import Literal, NamedTuple
import numpy as np
import pscdsl as psc
from pscdsl import f32
import settings_of_identity as cfg
W = int(os.environ["W"])
N = "scale_1"
class T(NamedTuple):
    f: object
def make(act):
    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return act(x)
    return f
def one(act):
    def f(x: f32) -> f32:
        return act(x)
    return f
held = T((lambda v: v * 2, lambda v: v * 3)[W])
half = functools.partial((lambda v: v * 2, lambda v: v * 3)[W])
@psc.kernel
def named(x: f32["n"], which: psc.Static[Literal["1", "2"]] = "1") -> f32["n"]:
    return x * getattr(cfg, "scale_" + which)
@psc.kernel
def counted(x: f32["n"]) -> f32["n"]:
    return x * getattr(cfg, f"scale_{1}") * getattr(cfg, "scale_" + str(1)) * getattr(cfg, N)
kernels = [
    make({"double": lambda v: v * 2, "triple": lambda v: v * 3}[("double", "triple")[W]]),
    make((lambda v: v * 2) if W == 0 else (lambda v: v * 3)),
    make(held.f), make(half),
    psc.vmap(one((lambda v: v * 2, lambda v: v * 3)[W])), named, counted,
]
found = [float(np.asarray(k(np.ones(1, np.float32)))[0]) for k in kernels]
print(json.dumps([found, [k.trace is None for k in kernels]]))
"""


def test_another_process_takes_no_program_for_another(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    settings = "import os\nscale_1 = 2.0 + int(os.environ['W'])\nscale_2 = 5.0\n"
    (tmp_path / "settings_of_identity.py").write_text(settings, encoding="utf-8")
    for which, read in ((0, True), (1, True), (0, False), (1, False)):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "W": str(which)}
        out = subprocess.run(
            [sys.executable, str(program)],
            check=True,
            capture_output=True,
            text=True,
            env=environment,
        )
        found, unread = json.loads(out.stdout)
        assert found == [2 + which] * 6 + [(2 + which) ** 3]
        assert unread == [not read] * 7


# Texts that change.

TEXT = """\
import pscdsl as psc
from pscdsl import f32

def helper(x):
    return x * 1

class P(psc.Record):
    w: f32["n"]

    def scaled(self, x):
        return x * 1

@psc.kernel
def k(x: f32["n"]) -> f32["n"]:
    return helper(x) + 1

@psc.kernel
def m(x: f32["n"]) -> f32["n"]:
    return P(x).scaled(x)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module that was loaded from a file."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "text_of_identity.py").write_text(TEXT, encoding="utf-8")
    yield importlib.import_module("text_of_identity")
    del sys.modules["text_of_identity"]


def change(module: Any, old: str, new: str) -> None:
    """Change the file of a module."""
    path = Path(module.__file__)
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def test_a_module_that_is_loaded_again_is_read_again(module: Any) -> None:
    before = module.k
    np.testing.assert_array_equal(np.asarray(before(X)), X + 1)
    change(module, "+ 1", "+ 100")
    importlib.reload(module)
    np.testing.assert_array_equal(np.asarray(module.k(X)), X + 100)
    np.testing.assert_array_equal(np.asarray(before(X)), X + 1)
    change(module, "return x * 1", "return x * 2")
    np.testing.assert_array_equal(np.asarray(module.k(X)), X + 100)
    importlib.reload(module)
    np.testing.assert_array_equal(np.asarray(module.k(X)), 2 * X + 100)
    np.testing.assert_array_equal(np.asarray(module.m(X)), 2 * X)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("+ 1", "+ 9"),
        ("return helper(x) + 1", "return (helper(x) + 1)"),
        ("\n@psc", "\n\n@psc"),
        ('k(x: f32["n"])', 'k(x: f32["m"])'),
        ('k(x: f32["n"]) -> f32["n"]', 'k(x: f32["n"]) -> f32[" n"]'),
        ("def helper(x):\n    return x * 1", "def helper(x):\n    return x * 2"),
        ("def helper(x)", "def helper(x, y=1)"),
    ],
)
def test_a_file_that_changed_before_it_was_read_is_refused(module: Any, old: str, new: str) -> None:
    assert old in TEXT
    change(module, old, new)
    with pytest.raises(psc.CheckError, match=r"is not what its text says") as caught:
        module.k(X)
    assert [each.code for each in caught.value.diagnostics] == ["PSC907"]
    assert "importlib.reload" in str(caught.value)
    importlib.reload(module)
    if "m" not in new.partition("->")[0].partition("[")[2]:
        module.k(X)


def test_a_text_of_the_same_size_and_time_is_read_when_it_is_loaded(module: Any) -> None:
    path = Path(module.__file__)
    for number in (1, 2, 3):
        change(module, f"+ {number}", f"+ {number + 1}")
        os.utime(path, (10**9, 10**9))
        importlib.reload(module)
        np.testing.assert_array_equal(np.asarray(module.k(X)), X + number + 1)
    change(module, "+ 4", "+ 5")
    os.utime(path, (10**9, 10**9))
    np.testing.assert_array_equal(np.asarray(psc.kernel(module.k._function)(X)), X + 4)


def test_a_method_that_changed_before_it_was_read_is_refused(module: Any) -> None:
    change(
        module,
        "    def scaled(self, x):\n        return x * 1",
        "    def scaled(self, x):\n        return x * 2",
    )
    with pytest.raises(psc.CheckError, match=r"is not what its text says"):
        module.m(X)


def test_a_file_that_changed_elsewhere_is_read(module: Any) -> None:
    change(module, "return P(x).scaled(x)", "return P(x).scaled(x)  # more\n\n\ndef more(): ...")
    np.testing.assert_array_equal(np.asarray(module.k(X)), X + 1)


def test_functions_that_are_given_other_code_are_read_again(module: Any) -> None:
    def old(x: f32) -> f32:
        return x * 2

    def new(x: f32) -> f32:
        return x * 3

    assert float(psc.grad(old)(1.0)) == 2
    old.__code__ = new.__code__  # as `%autoreload` does
    assert float(psc.grad(old)(1.0)) == 3


CHECKED = """\
import pscdsl as psc
import typeguard
from pscdsl import f32


@typeguard.typechecked
def helper(x: f32["n"]) -> f32["n"]:
    y: f32["n"] = x * 3
    return y


@psc.kernel
def k(x: f32["n"]) -> f32["n"]:
    return helper(x)
"""


@pytest.mark.parametrize("changed", [False, True])
def test_what_typeguard_compiles_again_is_found(
    changed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"checked_of_identity_{changed}"
    (tmp_path / f"{name}.py").write_text(CHECKED, encoding="utf-8")
    module = importlib.import_module(name)
    if not changed:
        np.testing.assert_array_equal(np.asarray(module.k(X)), X * 3)
        return
    change(module, "x * 3", "x * 4")
    with pytest.raises(psc.CheckError, match="is not what its text says"):
        module.k(X)


class Rewriting(SourceFileLoader):
    """Loads modules as import hooks do that put checks into functions."""

    def source_to_code(  # type: ignore[override]
        self, data: Any, path: Any, *name: Any, **options: Any
    ) -> Any:
        """The text with a statement more in each function."""
        tree = ast.parse(data)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                node.body.insert(0, ast.parse("int(1)").body[0])
        return compile(ast.fix_missing_locations(tree), path, "exec")


def hooked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """A function that loads one file again and again through an import hook."""
    path = tmp_path / "hooked_of_identity.py"
    path.write_text(TEXT, encoding="utf-8")
    loader: Any = Rewriting("hooked_of_identity", str(path))
    spec = importlib.util.spec_from_loader("hooked_of_identity", loader)
    assert spec is not None

    def load() -> Any:
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        loader.exec_module(module)
        return module

    module = load()
    np.testing.assert_array_equal(np.asarray(module.k(X)), X + 1)
    change(module, "+ 1", "+ 2")
    return load


def test_what_an_import_hook_makes_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    other = hooked(tmp_path, monkeypatch)()
    change(other, "+ 2", "+ 3")
    with pytest.raises(psc.CheckError, match="is not what its text says"):
        other.k(X)


def test_bytecode_of_an_older_text_is_what_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    load = hooked(tmp_path, monkeypatch)
    path, cached = tmp_path / "hooked_of_identity.py", next(tmp_path.rglob("*.pyc"))
    # Python takes bytecode for current if the text has its time, in seconds, and its size.
    then = int.from_bytes(cached.read_bytes()[8:12], "little")
    os.utime(path, (then, then))
    stale = load()
    np.testing.assert_array_equal(stale.k.__wrapped__(X), X + 1)
    np.testing.assert_array_equal(np.asarray(stale.k(X)), X + 1)
    change(stale, "+ 2", "+ 3")
    os.utime(path, (then, then))
    np.testing.assert_array_equal(np.asarray(load().k(X)), X + 1)


LINES = """\
import numpy as np, pscdsl as psc
from pscdsl import f32
def make(f):
    @psc.kernel
    def k(x: f32["n"]) -> f32["n"]:
        assert x.ndim == 1
        return f(x)
    return k
X = np.ones(1, np.float32)
a, b = make(lambda v: v * 2), make(
    lambda v: v * 3)
print(float(a(X)[0]), float(b(X)[0]))
c, d = make(lambda v: v * 2), make(lambda v: v * 3)
for each in (c, d):
    try:
        print(float(each(X)[0]))
    except psc.CheckError as error:
        print([each.code for each in error.diagnostics])
"""


@pytest.mark.parametrize(
    ("options", "wanted"),
    [(["-O"], "2.0 3.0\n2.0\n3.0\n"), (["-X", "no_debug_ranges"], "2.0 3.0\n")],
)
def test_options_of_python(options: list[str], wanted: str, tmp_path: Path) -> None:
    program = tmp_path / "lines.py"
    program.write_text(LINES, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *options, str(program)]
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert out.stdout.startswith(wanted)
    assert out.stdout == wanted or out.stdout.count("PSC908") == 2


def test_code_is_compared_by_its_content() -> None:
    # fmt: off
    several = [lambda v: v * 0.0, lambda v: v * -0.0, lambda v: v * 1, lambda v: v * True]
    # fmt: on
    codes = [each.__code__ for each in several]
    assert len({content(each) for each in codes}) == len(codes)
    assert all(same(each, each.replace(co_filename="elsewhere")) for each in codes)
    assert not same(codes[0], codes[0].replace(co_consts=(None, -0.0)))


# What the front end sees of the world.


class Seen(dict[str, Any]):
    """Global names, which tell what was looked up in them."""

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__(names)
        self.seen: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.seen.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.seen.add(str(name))
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The same."""
        self.seen.add(name)
        return super().get(name, default)

    def items(self) -> Any:
        """All of them."""
        self.seen.add("all names")
        return super().items()

    def values(self) -> Any:
        """All of them."""
        self.seen.add("all names")
        return super().values()


OF_MODULES = frozenset("__name__ __file__ __spec__ __loader__ __package__ __path__".split())
"""What says how a module was loaded, and belongs to the texts."""


@pytest.mark.parametrize("library", [activations, kalman, losses, normalization])
def test_every_look_up_is_written_down(library: types.ModuleType) -> None:
    kernels = [each for each in vars(library).values() if isinstance(each, Kernel)]
    assert kernels
    for kernel in kernels[:6]:
        old: Any = kernel._function
        names = Seen(old.__globals__)
        function = types.FunctionType(
            old.__code__, names, old.__name__, old.__defaults__, old.__closure__
        )
        function.__kwdefaults__, function.__annotations__ = old.__kwdefaults__, old.__annotations__
        made: Any = psc.kernel(function)
        made.check()
        found = recorded(made, trace_of)
        written = {name for _, name in found.names[0] if not name.startswith(CAPTURED)}
        assert written
        assert names.seen - OF_MODULES <= written


LOOKING = frozenset(
    "__globals__ __closure__ cell_contents __defaults__ __kwdefaults__ __code__ environ getenv "
    "f_globals f_locals f_builtins modules".split()
)
"""Attributes by which code sees what it was not given."""
ALLOWED = {
    "live.py": {"__defaults__", "__kwdefaults__", "modules", "__globals__", "__code__"},
    "class_snapshots.py": {"__code__", "__defaults__", "__globals__"},
    "snapshots.py": {"modules"},
    "loaded_classes.py": {"__code__", "__globals__"},
    "loaded_code.py": {"__globals__", "__code__", "modules"},
    "code_texts.py": {"modules"},
    "purity.py": {"modules"},
    "rereading.py": {"modules"},
    "traces.py": {name for name in LOOKING if name.startswith(("__", "cell", "modules"))},
}
"""What is read there is written down by the traces, or is how a text is found."""


def test_the_front_end_looks_at_nothing_by_itself() -> None:
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "pscdsl" / "_src" / "frontend").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in LOOKING:
                owner = node.value
                if node.attr == "modules" and not (
                    isinstance(owner, ast.Name) and owner.id == "sys"
                ):
                    continue
                found.setdefault(path.name, set()).add(node.attr)
    assert {name: looks - ALLOWED.get(name, set()) for name, looks in found.items()} == {
        name: set() for name in found
    }


# The results of checks that are kept.

BINDINGS = {
    "for type checkers": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    {0}\n{1}",
    "under a condition": "import sys\nif sys.argv[1:]:\n    {0}\nelse:\n    {2}",
    "in a try": "try:\n    {0}\nexcept ImportError:\n    {2}",
}
USE = """


@psc.kernel
def f(x: f32["n"]) -> f32["n"]:
    return h(x)
"""


@pytest.mark.parametrize("binding", BINDINGS)
def test_results_of_checks_are_those_of_all_files_that_may_bind(
    binding: str, tmp_path: Path
) -> None:
    main, helper = tmp_path / "main.py", tmp_path / "helper.py"
    parts = ("from helper import h", "def h(x):\n    return x - 1", "h = abs")
    text = "import pscdsl as psc\nfrom pscdsl import f32\n" + BINDINGS[binding].format(*parts) + USE
    main.write_text(text, encoding="utf-8")

    def found(cache: str | None) -> list[str]:
        result = check_project(files_below([main]), CheckOptions(cache, 1))
        return [f"{each.code} {each.span}" for each in result.diagnostics]

    for written in ("def h(x):\n    return x\n", "def (\n", "h = 3\n", "def h(x):\n    return x\n"):
        helper.write_text(written, encoding="utf-8")
        for _ in range(2):
            assert found(str(tmp_path / "results")) == found(None)


# Random programs: `make identity` tries more.


@pytest.mark.parametrize("first", [0, 1_000_000])
def test_random_programs_are_not_confused(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    figures = Figures()
    for made in pairs(first, 40):
        folder = tmp_path / str(made.seed)
        folder.mkdir()
        one_process(made, folder, figures, calls=made.seed % 20 == 0)
    assert not figures.problems
    assert figures.counts["read"] > 55
    assert figures.counts["found again"] > 12
