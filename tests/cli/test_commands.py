"""The command line, called as a user would, in this process."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from html import unescape
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from pscdsl._src.cli import COMMANDS, main, wants_colour
from pscdsl._src.cli.parsers import SHELLS

HEADER = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32

"""
GOOD = f"""{HEADER}
@psc.kernel
def double(x: f32["n"]) -> f32["n"]:
    return x + x
"""
BAD = f"""{HEADER}
@psc.kernel
def product(x: f32["n k"], y: f32["m k"]) -> f32["n m"]:
    return x @ y
"""

Write = Callable[[str], Path]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a program into the current folder."""
    monkeypatch.chdir(tmp_path)

    def make(text: str) -> Path:
        path = Path("program.py")
        path.write_text(text, encoding="utf-8")
        return path

    return make


def test_help_names_every_command(capsys: Capture) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: Capture) -> None:
    assert main([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"usage: pscdsl {name}")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["frobnicate"],
        ["check", "no-such-folder"],
        ["check", "--format", "runes", "."],
        ["check", "--select", "PSC000", "."],
        ["explain", "PSC000"],
        ["ir", "no-such-file.py:f"],
        ["hlo", "no-such-file.py:f", "--dims", "n"],
    ],
)
def test_what_cannot_run_exits_with_2(arguments: list[str]) -> None:
    assert main(arguments) == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["chekc"], "pscdsl: unknown command `chekc`; did you mean `check`?\n"),
        (["zzz"], "pscdsl: unknown command `zzz` (`pscdsl --help` lists them)\n"),
        (["--verson"], "pscdsl: unknown option `--verson`; did you mean `--version`?\n"),
        (
            ["check", "--formt", "json", "."],
            "pscdsl check: unknown option `--formt`; did you mean `--format`?\n",
        ),
        (["ir", "--gradd"], "pscdsl ir: unknown option `--gradd`; did you mean `--grad`?\n"),
        (
            ["run", "--zzz=1"],
            "pscdsl run: unknown option `--zzz` (`pscdsl run --help` lists them)\n",
        ),
    ],
)
def test_what_was_mistyped(arguments: list[str], says: str, capsys: Capture) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == says


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_scripts_know_commands_and_options(shell: str, capsys: Capture) -> None:
    pytest.importorskip("shtab")
    assert main(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in COMMANDS)
    assert "stdin-filename" in out


def test_without_shtab_completion_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert "`pip install shtab`" in capsys.readouterr().err


MADE = f"""{HEADER}
@psc.kernel
def energy(x: f32["n"], k: f32) -> f32:
    return k * np.sum(x * x) / 2


force = psc.grad(energy)
forces = psc.vmap(psc.grad(energy), in_axes=(0, None))
"""


FACTORY = f"""{HEADER}
def factory(k):
    @psc.kernel
    def inner(x: f32["n"]) -> f32["n"]:
        return x * k

    return inner


@psc.kernel
def double(x: f32["n"]) -> f32["n"]:
    return 2 * x
"""


def test_a_file_is_printed_though_a_kernel_in_it_is_not_checked(
    write: Write, capsys: Capture
) -> None:
    path = write(FACTORY)
    assert main(["ir", str(path)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("double[n](x: f32[n]) -> f32[n]")
    assert "`factory.inner` is made inside `factory`" in err


def test_kernels_that_transformations_make_are_kernels(write: Write, capsys: Capture) -> None:
    path = write(MADE)
    assert main(["check", "--no-cache", "--show-types", str(path)]) == 0
    out = capsys.readouterr().out
    assert "program.py:11:1: force(x: f32[n], k: f32) -> f32[n]\n" in out
    assert "program.py:12:1: forces(x: f32[batch n], k: f32) -> f32[batch n]\n" in out
    assert main(["ir", f"{path}:force"]) == 0
    assert capsys.readouterr().out.startswith("force[n](x: f32[n], k: f32) -> f32[n]\n")
    assert main(["hlo", f"{path}:forces", "--dims", "n=3,batch=2"]) == 0
    assert "tensor<2x3xf32>" in capsys.readouterr().out
    run = ["run", f"{path}:forces", "--arg", "x=[[1.0, 2.0], [3.0, 4.0]]", "--arg", "k=10.0"]
    assert main(run) == 0
    assert capsys.readouterr().out == "f32[batch n]\n[[10. 20.]\n [30. 40.]]\n"
    assert main(["ir", f"{path}:energie"]) == 2
    assert "its kernels are: energy, force, forces" in capsys.readouterr().err


SPRING = f"""{HEADER.replace("f32", "f32, i32")}
@psc.kernel
def spring(x: f32["n"], steps: i32, *, k: f32) -> f32:
    return k * np.sum(x * x * x)


@psc.kernel
def shifted(x: f32["n"], steps: i32, *, k: f32) -> tuple[f32["n"], i32]:
    return k * x * x, steps
"""


def test_derivatives_are_printed(write: Write, capsys: Capture) -> None:
    path = write(SPRING)
    plain = "x: f32[n], steps: i32, k: f32"
    firsts = {
        "--grad": f"grad(spring)[n]({plain}) -> f32[n]",
        "--grad --argnums=-2": f"grad(spring)[n]({plain}) -> f32[n]",
        "--grad --argnums 0,": f"grad(spring)[n]({plain}) -> (f32[n],)",
        "--grad --order 2": f"jacfwd(psc.grad(spring))[n]({plain}) -> f32[n n]",
        "--jvp": f"jvp(spring)[n]({plain}, d_x: f32[n], d_k: f32) -> (f32, f32)",
        "--vjp": f"vjp(spring)[n]({plain}, cotangent: f32) -> (f32, (f32[n], None, f32))",
    }
    for options, first in firsts.items():
        assert main(["ir", f"{path}:spring", *options.split(), "--simplified"]) == 0, options
        assert capsys.readouterr().out.splitlines()[0] == first
    assert main(["hlo", f"{path}:spring", "--grad", "--dims", "n=3"]) == 0
    assert "-> tensor<3xf32>" in capsys.readouterr().out
    given = ["--arg", "x=[1.0, 2.0]", "--arg", "k=2.0", "--arg", "steps=1"]
    assert main(["run", f"{path}:spring", "--grad", *given]) == 0
    assert capsys.readouterr().out == "f32[n]\n[ 6. 24.]\n"
    assert main(["run", f"{path}:spring", "--grad", "--order", "2", *given]) == 0
    assert capsys.readouterr().out == "f32[n n]\n[[12.  0.]\n [ 0. 24.]]\n"
    along = ["--arg", "d_x=[1.0, 0.0]", "--arg", "d_k=0.0"]
    assert main(["run", f"{path}:spring", "--jvp", *given, *along]) == 0
    assert capsys.readouterr().out == "[0]: f32\n18.0\n[1]: f32\n6.0\n"
    assert (
        main(["run", f"{path}:shifted", "--vjp", *given, "--arg", "cotangent[0]=[1.0, 1.0]"]) == 0
    )
    out = capsys.readouterr().out
    assert "[1][0]: f32[n]\n[4. 8.]\n[1][2]: f32\n5.0\n" in out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("program.py --grad", "2 kernels in program.py: name one"),
        ("program.py:shifted --grad", "--jvp and --vjp are derivatives of any result"),
        ("program.py:spring --order 2", "--order goes with --grad"),
        ("program.py:spring --jvp --argnums 0", "--argnums goes with --grad"),
        ("program.py:spring --grad --argnums x", "write --argnums 0,2"),
        ("program.py:spring --grad --order 0", "--order is between 1 and 8, not 0"),
        ("program.py:spring --grad --jvp", "not allowed with argument"),
    ],
)
def test_derivatives_that_cannot_be(write: Write, capsys: Capture, options: str, says: str) -> None:
    write(SPRING)
    assert main(["ir", *options.split()]) == 2
    assert says in capsys.readouterr().err


def test_derivatives_that_are_refused(write: Write, capsys: Capture) -> None:
    path = write(SPRING)
    for places, code in (("1", "PSC511"), ("5", "PSC514"), ("0,0", "PSC514")):
        assert main(["ir", f"{path}:spring", "--grad", "--argnums", places]) == 1
        assert code in capsys.readouterr().err


def test_version(capsys: Capture) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("pscdsl ")


@pytest.mark.parametrize(
    ("variables", "option", "coloured"),
    [
        ({}, "auto", False),
        ({"FORCE_COLOR": "1"}, "auto", True),
        ({"FORCE_COLOR": ""}, "auto", False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, "auto", True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, "auto", False),
        ({"FORCE_COLOR": "1"}, "never", False),
        ({"NO_COLOR": "1"}, "always", True),
    ],
)
@pytest.mark.parametrize("command", ["check", "discover", "explain"])
def test_variables_and_the_option_decide_on_colours(
    write: Write,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    option: str,
    coloured: bool,
    command: str,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm", **variables}.items():
        monkeypatch.setenv(name, value)
    program = f"{BAD}\n\ndef plain(x):\n    return np.exp(x)\n"
    given = "PSC301" if command == "explain" else str(write(program))
    main([command, given, "--colour", option])
    assert ("\x1b[" in capsys.readouterr().out) is coloured


@pytest.mark.parametrize(
    ("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_a_terminal_is_coloured(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], coloured: bool
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm", **variables}.items():
        monkeypatch.setenv(name, value)
    terminal = StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    assert wants_colour(Namespace(colour="auto"), terminal) is coloured


def test_explain_lists_and_explains(capsys: Capture) -> None:
    assert main(["explain"]) == 0
    assert "PSC301" in capsys.readouterr().out
    for spelling in ("PSC301", "psc301", "301"):
        assert main(["explain", spelling]) == 0
        out = capsys.readouterr().out
        assert out.startswith("# PSC301: ")
        assert "## Fix" in out


def test_a_good_program_passes(write: Write, capsys: Capture) -> None:
    assert main(["check", str(write(GOOD))]) == 0
    assert capsys.readouterr().out == "1 kernel checked in 1 file: no errors\n"


def test_a_bad_program_fails_at_its_place(write: Write, capsys: Capture) -> None:
    assert main(["check", "--format", "concise", str(write(BAD))]) == 1
    assert capsys.readouterr().out.startswith("program.py:8:12: error[PSC301] ")


def test_text_shows_the_source(write: Write, capsys: Capture) -> None:
    assert main(["check", str(write(BAD))]) == 1
    out = capsys.readouterr().out
    assert " 8│     return x @ y\n" in out
    assert out.endswith("1 kernel checked in 1 file: 1 error\n")


def test_json_is_an_object(write: Write, capsys: Capture) -> None:
    assert main(["check", "--format", "json", str(write(BAD))]) == 1
    document = json.loads(capsys.readouterr().out)
    [found] = document["diagnostics"]
    assert (found["code"], found["path"], found["kernel"]) == ("PSC301", "program.py", "product")
    [kernel] = document["kernels"]
    assert (kernel["name"], kernel["status"]) == ("product", "error")
    assert document["summary"]["errors"] == 1


TWICE = f"""{BAD}

@psc.kernel
def products(x: f32["n k"], y: f32["m k"]) -> f32["n m"]:
    return np.exp(x @ y)


@psc.kernel
def first(x: f32["n"]) -> f32["n"]:
    return undefined(x)
"""


def test_statistics_count_each_code(write: Write, capsys: Capture) -> None:
    path = str(write(TWICE))
    assert main(["check", "--statistics", path]) == 1
    rows = capsys.readouterr().out.splitlines()
    assert rows[:2] == ["2  PSC301  [*]  inner-sizes-differ", "1  PSC102  [ ]  unknown-name"]
    assert rows[-1] == "3 kernels checked in 1 file: 3 errors"
    assert main(["check", "--statistics", "--format", "json", path]) == 1
    document = json.loads(capsys.readouterr().out)
    counts = [{**each} for each in document["statistics"]]
    assert counts[0] == {"code": "PSC301", "name": "inner-sizes-differ", "count": 2, "fixable": 2}
    assert len(document["diagnostics"]) == 3
    assert main(["check", "--statistics", "--format", "sarif", path]) == 2


def test_select_and_ignore_take_codes_and_families(write: Write) -> None:
    path = str(write(BAD))
    assert main(["check", "--ignore", "PSC3", path]) == 0
    assert main(["check", "--select", "PSC4,PSC5", path]) == 0
    assert main(["check", "--select", "psc301", path]) == 1


def test_show_types(write: Write, capsys: Capture) -> None:
    assert main(["check", "--show-types", str(write(GOOD))]) == 0
    assert "double(" in capsys.readouterr().out


def test_ir_and_hlo_are_printed(write: Write, capsys: Capture) -> None:
    path = write(GOOD)
    assert main(["ir", f"{path}:double"]) == 0
    assert "add" in capsys.readouterr().out
    assert main(["hlo", f"{path}:double", "--dims", "n=3"]) == 0
    assert "tensor<3xf32>" in capsys.readouterr().out
    assert main(["hlo", str(path), "--dims", "n=3", "--optimized"]) == 0
    assert "f32[3]" in capsys.readouterr().out


def test_a_kernel_that_is_not_there(write: Write) -> None:
    assert main(["ir", f"{write(GOOD)}:nothing"]) == 2


def test_findings_stop_the_other_commands(write: Write, capsys: Capture) -> None:
    assert main(["ir", f"{write(BAD)}:product"]) == 1
    assert "PSC301" in capsys.readouterr().err


def test_run_takes_literals_files_and_random_data(write: Write, capsys: Capture) -> None:
    target = f"{write(GOOD)}:double"
    assert main(["run", target, "--arg", "x=[1, 2.5]"]) == 0
    assert capsys.readouterr().out == "f32[n]\n[2. 5.]\n"
    np.save("x.npy", np.array([3], dtype=np.float32))
    assert main(["run", target, "--arg", "x=x.npy"]) == 0
    assert capsys.readouterr().out == "f32[n]\n[6.]\n"
    assert main(["run", target, "--dims", "n=2"]) == 0
    first = capsys.readouterr().out
    assert main(["run", target, "--dims", "n=2", "--seed", "0"]) == 0
    assert capsys.readouterr().out == first


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--arg", "y=1"],
        ["--arg", "x"],
        ["--arg", "x=[1, [2]]"],
        ["--arg", "x=[1, 2]", "--dims", "n=3"],
        ["--arg", "x=none.npy"],
        ["--dims", "n=0"],
    ],
)
def test_run_refuses_what_does_not_fit(write: Write, options: list[str]) -> None:
    assert main(["run", f"{write(GOOD)}:double", *options]) == 2


def test_a_pickle_is_not_read(write: Write) -> None:
    path = write(GOOD)
    np.save("x.npy", np.array([print], dtype=object), allow_pickle=True)
    assert main(["run", f"{path}:double", "--arg", "x=x.npy"]) == 2


def test_as_a_module_in_a_narrow_locale(write: Write) -> None:
    command = [sys.executable, "-m", "pscdsl", "check", str(write(BAD))]
    done = subprocess.run(
        command,
        capture_output=True,
        check=False,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 1
    assert b"PSC301" in done.stdout


PLAIN = """\
import numpy as np


def mean_square(x):
    return np.mean(x**2)


def fill(items, x):
    items.append(x)
    return items


class Model:
    def predict(self, x):
        return x
"""


def test_discover_shows_definitions_and_first_obstacles(write: Write, capsys: Capture) -> None:
    path = write(PLAIN)
    assert main(["discover", str(path)]) == 0
    out = capsys.readouterr().out
    assert '    def mean_square(x: Float["*batch"]) -> Float:' in out
    assert "error[PSC205]" in out
    assert "2 functions in 1 file: 1 PSC, 1 not PSC, 0 unknown\n" in out
    assert "not looked at: 1 inside a class\n" in out


@pytest.mark.parametrize(("select", "names"), [("psc", ["mean_square"]), ("obstacles", ["fill"])])
def test_discover_selects(write: Write, capsys: Capture, select: str, names: list[str]) -> None:
    path = write(PLAIN)
    assert main(["discover", "--format", "json", "--select", select, str(path)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in document["functions"]] == names
    summary = document["summary"]
    assert (summary["functions"], summary["psc"], summary["methods"]) == (2, 1, 1)
    assert summary["first_obstacles"] == {"PSC205": 1}


def test_discover_says_what_it_could_not_read(write: Write, capsys: Capture) -> None:
    path = write("def f(:\n")
    assert main(["discover", "--format", "json", str(path)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["code"] for each in document["diagnostics"]] == ["PSC100"]
    assert main(["discover", "missing.py"]) == 2


LOOPS = """
import numpy as np
import pscdsl as psc
from pscdsl import f64

@psc.kernel
def weighed(x: f64["n"]) -> f64["n"]:
    y = np.zeros_like(x)
    for i in range(len(x)):
        for j in range(3):
            y[i] += x[i] * j
    while y[0] > 1:
        y = y / 2
    while False:
        pass
    return y
"""


def test_types_say_which_loops_are_unrolled(write: Write, capsys: Capture) -> None:
    assert main(["check", "--no-cache", "--show-types", str(write(LOOPS))]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:-1] == [
        "  line 9: rolled, n steps, carries `y`",
        "  line 10: unrolled, 3 steps",
        "  line 12: rolled, carries `y`",
        "  line 14: unrolled",
    ]


FORMATS = ("text", "concise", "json", "github", "sarif")
OPEN = (
    "import numpy as np\nimport pscdsl as psc\nfrom pscdsl import f32, Float\n\n\n"
    '@psc.kernel\ndef f(x: Float["n"], y: f32["m"]) -> f32:\n'
    "    psc.reveal_type(x.sum() > 0)\n    return y[2]\n"
)


@pytest.mark.parametrize("format_", FORMATS)
def test_a_revealed_type_and_a_counterexample_are_in_every_format(
    format_: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "revealed.py"
    path.write_text(OPEN)
    assert main(["check", "--format", format_, str(path)]) == 1
    out = capsys.readouterr().out
    assert "the type is bool" in out
    if format_ != "concise":
        assert "for instance m=1" in out


@pytest.mark.parametrize("text", ["", "import numpy\n\n\ndef f(x):\n    return x\n"])
def test_a_strict_check_of_nothing_fails(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nothing.py"
    path.write_text(text)
    assert main(["check", str(path)]) == 0
    assert main(["check", "--strict", str(path)]) == 1
    assert "there is no kernel to check" in capsys.readouterr().err


def test_functions_of_jax_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "of_jax.py"
    path.write_text(
        "import jax\nimport pscdsl as psc\nfrom jax import numpy as jnp\nfrom pscdsl import f32\n"
        "@jax.jit\ndef f(x):\n    def g(y):\n        return jnp.exp(y)\n    return g(x)\n\n\n"
        "class C:\n    def method(self, x):\n        return jnp.exp(x)\n\n\n"
        "def other(x):\n    return x\n\n\n"
        "def helper(x):\n    return jnp.exp(x)\n\n\n"
        '@psc.kernel\ndef k(x: f32["n"]) -> f32["n"]:\n    return helper(x)\n'
    )
    main(["check", str(path)])
    assert "2 functions that use jax were checked for keys and purity" in capsys.readouterr().out


REUSED = "import jax\n\n\ndef f(k):\n    return jax.random.normal(k) + jax.random.normal(k)\n"


@pytest.mark.parametrize(("dialect", "code"), [("auto", 1), ("jax", 1), ("psc", 0)])
def test_the_dialect_says_which_files_are_programs_of_jax(
    dialect: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text(f'[tool.pscdsl]\ndialect = "{dialect}"\n')
    (tmp_path / "drawn.py").write_text(REUSED)
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert main(["check", "--cache-dir", str(tmp_path / "cache")]) == code


def test_a_dialect_is_one_of_three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.pscdsl]\ndialect = "numpy"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["check"]) == 2


def test_calls_with_keys_that_are_not_followed_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "unknown.py"
    path.write_text(
        "import jax\nfrom other import g\n\n\ndef f(m):\n    key, sub = jax.random.split(m.key)\n"
        "    return m.init(key), g(sub)\n"
    )
    assert main(["check", "--strict", str(path)]) == 0
    counted, causes = capsys.readouterr().out.splitlines()[-2:]
    assert counted == "1 function that uses jax was checked for keys and purity"
    assert causes == (
        "2 calls with keys not followed (`--show-unknown`): 1 of functions of other libraries, "
        "1 of methods of objects of unknown classes"
    )
    assert main(["check", "--strict", "--show-unknown", str(path)]) == 0
    rows = [row.partition("unknown.py:")[2] for row in capsys.readouterr().out.splitlines()[:2]]
    assert rows == [
        "7:12: `m.init` is not followed: methods of objects of unknown classes",
        "7:25: `g` is not followed: functions of other libraries",
    ]


def test_calls_in_traced_functions_that_are_not_followed_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "unknown.py"
    path.write_text(
        "import jax\nimport optax\n\nscaled = jax.vmap(abs)\n\n\n@jax.jit\ndef f(model, g, x):\n"
        "    seen = []\n    seen.append(x.sum())\n    model.log.append(x)\n"
        "    return g(model.init(x)) + scaled(x) + jax.vmap(g)(x) + optax.l2_loss(x)\n\n\n"
        "def not_traced(g):\n    return g()\n"
    )
    assert main(["check", "--strict", "--show-unknown", str(path)]) == 0
    *rows, counted = capsys.readouterr().out.splitlines()
    assert [row.partition("unknown.py:")[2] for row in rows[:5]] == [
        "11:5: `model.log.append` is not followed: methods of objects of unknown classes",
        "12:12: `g` is not followed: functions that are arguments or computed",
        "12:14: `model.init` is not followed: methods of objects of unknown classes",
        "12:52: `g` is not followed: functions that are arguments or computed",
        "12:60: `optax.l2_loss` is not followed: functions of other libraries",
    ]
    assert counted == (
        "5 calls in traced functions not followed (`--show-unknown`): 1 of functions of other "
        "libraries, 2 of methods of objects of unknown classes, 2 of functions that are arguments "
        "or computed"
    )


def test_a_kernel_that_was_not_checked_fails_a_strict_check_from_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "made.py"
    path.write_text(
        "import pscdsl as psc\nfrom pscdsl import f32\n\n\ndef make(scale):\n    @psc.kernel\n"
        '    def f(x: f32["n"]) -> f32["n"]:\n        return scale * x\n\n    return f\n'
    )
    for _ in range(2):
        folder = str(tmp_path / "cache")
        assert main(["check", "--strict", "--cache-dir", folder, str(path)]) == 1


PICTURES = {"json": "{", "dot": 'digraph "', "html": "<!DOCTYPE html>"}


@pytest.mark.parametrize("form", PICTURES)
@pytest.mark.parametrize("options", [[], ["--simplified"], ["--vjp"], ["--jvp", "--simplified"]])
def test_a_program_as_a_picture(
    write: Write, capsys: Capture, form: str, options: list[str]
) -> None:
    write(GOOD)
    assert main(["ir", "program.py:double", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert main(["ir", "program.py:double", *options, "--format", form]) == 0
    picture = capsys.readouterr().out
    assert picture.startswith(PICTURES[form])
    for line in lines:
        assert line.removesuffix(":").strip() in unescape(picture), line


def test_the_picture_of_a_file_has_all_its_kernels(write: Write, capsys: Capture) -> None:
    write(GOOD + "\n\n@psc.kernel\ndef twice(x: f32['n']) -> f32['n']:\n    return double(x)\n")
    assert main(["ir", "program.py", "--format", "json"]) == 0
    graphs = json.loads(capsys.readouterr().out)["graphs"]
    assert [each["id"] for each in graphs][:2] == ["double", "twice"]


@pytest.mark.parametrize("form", PICTURES)
def test_there_is_no_picture_of_an_error(write: Write, capsys: Capture, form: str) -> None:
    write(GOOD + BAD.removeprefix(HEADER))
    assert main(["ir", "program.py", "--format", form]) == 1
    out, error = capsys.readouterr()
    assert not out
    assert "PSC301" in error


def test_shapes_of_jax_are_counted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "shapes.py"
    path.write_text(
        "import jax\n"
        "from jaxtyping import Array, Float\n"
        'def right(x: Float[Array, "n"]) -> Float[Array, "n"]:\n'
        "    return x + 1\n"
        'def wrong(x: Float[Array, "n"]) -> Float[Array, ""]:\n'
        "    return x + 1\n"
        'def unknown(x: Float[Array, "n"], f: object) -> Float[Array, "n"]:\n'
        "    return f(x)\n"
    )
    assert main(["check", "--show-unknown", str(path)]) == 1
    shown = capsys.readouterr().out
    line = "1 right for every size, 1 wrong, 1 not followed (`--show-unknown`)"
    assert f"3 functions of jax with shapes: {line}" in shown
    assert "shapes.py:7:1: `unknown` is not followed: " in shown
