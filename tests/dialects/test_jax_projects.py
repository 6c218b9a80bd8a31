"""JAX programs of several files: calls are followed into the other files of the project."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

import pytest

from pscdsl._src.checker.check import check_file, check_paths, deep_stack
from pscdsl._src.cli import main
from pscdsl._src.frontend.modules.files import files_below
from pscdsl.typing.diagnostics import Diagnostic

LAYERS = """\
import jax


def drawn(key):
    return jax.random.normal(key)


def advanced(key):
    key, sub = jax.random.split(key)
    return key, jax.random.normal(sub)


def printed(x):
    print(x)
    return x


class Layer:
    def __init__(self, key):
        self.weight = jax.random.normal(key)

    def noisy(self, key):
        return self.weight + jax.random.normal(key)
"""
BODY = "def f(key):\n    return {0}(key) + {0}(key)\n"


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def found(folder: Path, files: Mapping[str, str]) -> tuple[Diagnostic, ...]:
    """Return the findings in files, of which `layers.py` is one."""
    write(folder, {"pkg/__init__.py": "", "pkg/layers.py": LAYERS, **files})
    return check_paths([folder]).diagnostics


@pytest.mark.parametrize(
    ("statement", "function", "others"),
    [
        ("from .layers import drawn", "drawn", {}),
        ("from pkg.layers import drawn as d", "d", {}),
        ("import pkg.layers", "pkg.layers.drawn", {}),
        ("import pkg.layers as L", "L.drawn", {}),
        ("from . import layers", "layers.drawn", {}),
        ("from .layers import *", "drawn", {}),
        ("from . import drawn", "drawn", {"pkg/__init__.py": "from .layers import drawn\n"}),
        ("import pkg", "pkg.init", {"pkg/__init__.py": "from .layers import drawn as init\n"}),
        ("from . import names", "names.d", {"pkg/names.py": "from .layers import drawn as d\n"}),
        ("from .names import *", "drawn", {"pkg/names.py": "from .layers import *\n"}),
        ("from .names import jr", "jr.normal", {"pkg/names.py": "import jax.random as jr\n"}),
        ("from .space.inner import drawn", "drawn", {"pkg/space/inner.py": LAYERS}),
        ("from .layers import Layer", "Layer", {}),
        ("from .layers import Layer\nlayer = Layer", "Layer", {}),
    ],
)
def test_a_key_is_used_twice_by_functions_of_another_file(
    tmp_path: Path, statement: str, function: str, others: dict[str, str]
) -> None:
    text = f"import jax\n{statement}\n\n\n{BODY.format(function)}"
    (finding,) = found(tmp_path, {**others, "pkg/model.py": text})
    assert finding.code == "PSC601"
    assert finding.span.path.endswith("model.py")


def test_the_call_that_draws_is_shown_in_its_file(tmp_path: Path) -> None:
    text = f"import jax\nfrom .layers import drawn\n\n\n{BODY.format('drawn')}"
    (finding,) = found(tmp_path, {"pkg/model.py": text})
    places = [(Path(label.span.path).name, label.span.line) for label in finding.labels]
    assert places == [("model.py", 6), ("layers.py", 5)]


def test_what_another_file_returns_is_followed(tmp_path: Path) -> None:
    text = (
        "import jax\nfrom .layers import Layer, advanced, drawn\n\n\n"
        "def right(key):\n    key, x = advanced(key)\n    return x + drawn(key)\n\n\n"
        "def wrong(key):\n    _, x = advanced(key)\n    return x + drawn(key)\n\n\n"
        "def method(key):\n    layer = Layer(key)\n    return layer.noisy(key)\n\n\n"
        "class Own(Layer):\n    def twice(self, key):\n"
        "        return self.noisy(key) + self.noisy(key)\n"
    )
    assert [each.span.line for each in found(tmp_path, {"pkg/model.py": text})] == [12, 17, 22]


def test_names_that_may_be_others_are_not_followed(tmp_path: Path) -> None:
    text = (
        "import jax\ntry:\n    from .layers import drawn\nexcept ImportError:\n    drawn = None\n"
        f"\n\n{BODY.format('drawn')}"
    )
    assert not found(tmp_path, {"pkg/model.py": text})


def test_effects_in_another_file_are_found_where_a_transformation_runs_them(tmp_path: Path) -> None:
    text = "import jax\nfrom .layers import printed\n\nstep = jax.jit(lambda x: printed(x) + 1)\n"
    (finding,) = found(tmp_path, {"pkg/model.py": text})
    assert finding.code == "PSC201"
    assert Path(finding.span.path).name == "layers.py"
    assert [Path(label.span.path).name for label in finding.labels] == ["model.py"]


def test_a_comment_beside_the_effect_silences_it(tmp_path: Path) -> None:
    layers = LAYERS.replace("print(x)", "print(x)  # psc: ignore[PSC201]")
    text = "import jax\nfrom .layers import printed\n\nstep = jax.jit(printed)\n"
    assert not found(tmp_path, {"pkg/layers.py": layers, "pkg/model.py": text})


CIRCLE = {
    "pkg/one.py": "import jax\nfrom .two import two\n\n\ndef one(key, n):\n"
    "    if n:\n        two(key, n - 1)\n    return jax.random.normal(key)\n",
    "pkg/two.py": "import jax\nfrom .three import three\n\n\ndef two(key, n):\n"
    "    x = three(key, n)\n    return x + jax.random.normal(key)\n",
    "pkg/three.py": "import jax\nfrom .one import one\n\n\ndef three(key, n):\n"
    "    key, sub = jax.random.split(key)\n    return one(sub, n) + jax.random.normal(key)\n",
    "pkg/four.py": "import jax\nfrom .two import two\n\n\n"
    "def four(key):\n    return two(key, 1) + jax.random.normal(key)\n",
}


def test_files_that_call_each_other_have_the_same_findings_in_any_order(tmp_path: Path) -> None:
    write(tmp_path, {"pkg/__init__.py": "", **CIRCLE})
    outcomes: set[tuple[str, ...]] = set()
    for names in itertools.permutations(CIRCLE):
        files = files_below([tmp_path])
        with deep_stack():
            results = [check_file(files, str(tmp_path / name))[0] for name in names]
        rows = (f"{d.span} {d.code}" for result in results for d in result.diagnostics)
        outcomes.add(tuple(sorted(rows)))
    assert len(outcomes) == 1


def test_a_stored_result_depends_on_the_files_that_were_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = f"import jax\nfrom .names import drawn\n\n\n{BODY.format('drawn')}"
    names = {"pkg/names.py": "from .layers import drawn\n"}
    write(tmp_path, {"pkg/__init__.py": "", "pkg/layers.py": LAYERS, "pkg/model.py": text, **names})
    command = ["check", "--cache-dir", str(tmp_path / "cache"), "pkg/model.py"]
    codes: list[int] = []
    for layers in (LAYERS, LAYERS.replace("normal(key)", "key_data(key)"), LAYERS):
        write(tmp_path, {"pkg/layers.py": layers})
        codes += [main(command), main(command)]
    assert codes == [1, 1, 0, 0, 1, 1]


SEEDS = (
    "import jax\n\n\ndef {0}():\n    x = jax.random.normal(jax.random.key(0))\n"
    "    return x, jax.random.normal(jax.random.key(0))\n"
)
COUNTED = (
    "import jax\n\n\ndef {0}():\n    count = 0\n    seen = []\n\n    @jax.jit\n    def f(x):\n"
    "        nonlocal count\n        count += {1}\n        seen.append({1})\n        return x\n\n"
    "    return f, count, seen\n"
)


@pytest.mark.parametrize(
    ("name", "function", "codes"),
    [
        ("model.py", "draw", ["PSC603"]),
        ("model.py", "test_draw", []),
        ("test_model.py", "draw", []),
        ("model_test.py", "draw", []),
        ("testing.py", "draw", ["PSC603"]),
    ],
)
def test_tests_write_a_seed_again(
    tmp_path: Path, name: str, function: str, codes: list[str]
) -> None:
    assert [each.code for each in found(tmp_path, {name: SEEDS.format(function)})] == codes


@pytest.mark.parametrize(
    ("function", "value", "codes"),
    [
        ("test_f", "1", []),
        ("test_f", "x", ["PSC204", "PSC205"]),
        ("f", "1", ["PSC204", "PSC205"]),
    ],
)
def test_tests_count_how_often_a_function_is_traced(
    tmp_path: Path, function: str, value: str, codes: list[str]
) -> None:
    text = COUNTED.format(function, value)
    assert [each.code for each in found(tmp_path, {"model.py": text})] == codes


LOSSES = """\
import jax.numpy as jnp
from jaxtyping import Array, Float


def length(w: Float[Array, "n"]) -> Float[Array, ""]:
    return jnp.linalg.norm(w)


def squares(w: Float[Array, "n"]) -> Float[Array, ""]:
    return jnp.sum(w**2)
"""


@pytest.mark.parametrize(
    ("statement", "function", "count"),
    [
        ("from .losses import length", "length", 1),
        ("from . import losses", "losses.length", 1),
        ("from .losses import squares", "squares", 0),
    ],
)
def test_functions_of_other_files_are_differentiated(
    statement: str, function: str, count: int, tmp_path: Path
) -> None:
    train = f"import jax\n{statement}\n\n\ndef step(w):\n    return jax.grad({function})(w)\n"
    diagnostics = found(tmp_path, {"pkg/losses.py": LOSSES, "pkg/train.py": train})
    assert [each.code for each in diagnostics] == ["PSC716"] * count
    for each in diagnostics:
        assert each.span.path.endswith("losses.py")
        assert [Path(label.span.path).name for label in each.labels] == ["train.py"]


def test_functions_that_nothing_differentiates_are_left(tmp_path: Path) -> None:
    assert not found(tmp_path, {"pkg/losses.py": LOSSES})


RAMP = (
    "import os\n\nimport jax\nimport jax.numpy as jnp\nfrom jaxtyping import Array, {1}\n\n{0}\n"
    'def ramp(x: {1}[Array, "3"]) -> {1}[Array, "3"]:\n    return x * jnp.linspace(0, 1, 3)\n'
)


@pytest.mark.parametrize(
    ("statement", "is_wide"),
    [
        ("", False),
        ('jax.config.update("jax_enable_x64", True)', True),
        ('jax.config.update("jax_enable_x64", False)', False),
        ("jax.config.jax_enable_x64 = True", True),
        ('os.environ["JAX_ENABLE_X64"] = "1"', True),
        ('os.environ["JAX_ENABLE_X64"] = "0"', False),
        ('def wide():\n    jax.config.update("jax_enable_x64", True)', False),
    ],
)
def test_a_file_switches_64_bits_on(tmp_path: Path, statement: str, is_wide: bool) -> None:
    texts = {name: RAMP.format(statement, name) for name in ("Float32", "Float64")}
    write(tmp_path, {f"{name}.py": text for name, text in texts.items()})
    annotated = check_paths([tmp_path]).annotated
    assert [each.is_proven for each in annotated] == [not is_wide, True]
