"""The plug-in of pytest, in sessions of their own."""

from __future__ import annotations

import os
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from pscdsl._src.cli import main
from pscdsl._src.plugins import pytest as pytest_plugin
from pscdsl._src.support.effects import COMPILED

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
ENTRY = ROOT / "pscdsl" / "entry"
INSTALLED = "pscdsl" in entry_points(group="pytest11").names
HEAD = "import numpy as np\nimport pscdsl as psc\nfrom pscdsl import f32\n\n\n"
GOOD = HEAD + '@psc.kernel\ndef f(x: f32["n"]) -> f32["n"]:\n    return x\n'
IMPURE = HEAD + '@psc.kernel\ndef f(x: f32["n"]) -> f32["n"]:\n    print(x)\n    return x\n'
UNUSED = HEAD + '@psc.kernel\ndef f(x: f32["n"]) -> f32["n"]:\n    return x  # psc: ignore\n'
MADE = HEAD + (
    'def make(scale):\n    @psc.kernel\n    def f(x: f32["n"]) -> f32["n"]:\n'
    "        return scale * x\n\n    return f\n"
)


assert pytest_plugin  # loaded once, not again in each session


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """A session with the plug-in, by its entry point if this is an installation that has it."""
    if INSTALLED:
        return pytester.runpytest(*arguments)
    pytester.syspathinsert(ENTRY)
    return pytester.runpytest("-p", "pytest_pscdsl", *arguments)


def test_a_file_is_a_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(good=GOOD, test_own="def test_nothing(): pass\n")
    result = run(pytester, "--pscdsl", "-v")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["good.py::pscdsl PASSED*", "1 kernel checked in 2 files*"])


def test_a_failure_is_the_report_without_a_traceback(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(good=GOOD, impure=IMPURE)
    result = run(pytester, "--pscdsl")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*pscdsl: impure.py*", "error[[]PSC201]*: *", "*impure.py:8:5", " 8│     print(x)"]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*runtest*")


def test_without_the_option_nothing_is_collected(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(impure=IMPURE)
    assert run(pytester).ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_the_marker_is_known_and_selects(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_own="def test_nothing(): pass\n")
    arguments = ("--pscdsl", "--strict-markers", "-W", "error")
    run(pytester, *arguments, "-m", "pscdsl").assert_outcomes(passed=1, deselected=1)
    run(pytester, *arguments, "-m", "not pscdsl").assert_outcomes(passed=1, deselected=1)


def test_the_settings_count(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(impure=IMPURE, unused=UNUSED, left_out=IMPURE)
    settings = "[tool.pscdsl]\nignore = ['PSC201']\nexclude = ['left_out.py']\n"
    pytester.makepyprojecttoml(settings)
    run(pytester, "--pscdsl").assert_outcomes(passed=2)
    pytester.makepyprojecttoml(settings + "strict = true\n")
    result = run(pytester, "--pscdsl")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["warning[[]PSC920]*"])


def test_in_strict_mode_every_kernel_has_to_be_checked(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(made=MADE)
    run(pytester, "--pscdsl").assert_outcomes(passed=1)
    pytester.makepyprojecttoml("[tool.pscdsl]\nstrict = true\nselect = ['PSC3']\n")
    result = run(pytester, "--pscdsl")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["note[[]PSC903]*"])


def test_the_baseline_counts(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(impure=IMPURE)
    assert main(["check", "--write-baseline", "known.json"]) == 0
    pytester.makepyprojecttoml("[tool.pscdsl]\nbaseline = 'known.json'\n")
    result = run(pytester, "--pscdsl")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*no errors (1 in the baseline)"])
    Path("known.json").write_text("damaged", encoding="utf-8")
    assert run(pytester, "--pscdsl").ret == pytest.ExitCode.USAGE_ERROR


def test_wrong_settings_are_an_error_of_usage(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml("[tool.pscdsl]\nstrickt = true\n")
    result = run(pytester, "--pscdsl")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*PSC923*", "*`strict` is the nearest name"])


def test_a_finding_in_a_helper_is_told_once(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        helper="def say(x):\n    print(x)\n    return x\n",
        user=IMPURE.replace("print", "say").replace(
            "import psc", "from helper import say\nimport psc"
        ),
    )
    run(pytester, "--pscdsl").assert_outcomes(passed=1, failed=1)
    result = run(pytester, "--pscdsl", "user.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*helper.py:2:5"])


def test_what_is_no_python_fails(pytester: pytest.Pytester) -> None:
    Path(pytester.path, "odd.py").write_bytes(b"\xff\xfe\0")
    result = run(pytester, "--pscdsl")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["error[[]PSC100]*"])


@pytest.mark.skipif(not INSTALLED, reason="only an installation has the entry point")
def test_it_can_be_turned_off(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("-p", "no:pscdsl", "--pscdsl")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_unused_it_loads_nothing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile("import sys\n\ndef test_modules(): assert 'pscdsl' not in sys.modules\n")
    named = () if INSTALLED else ("-p", "pytest_pscdsl")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ENTRY), str(ROOT)]))
    # An older installation has typeguard load the whole package.
    others = () if INSTALLED else ("-p", "no:typeguard")
    command = (sys.executable, "-m", "pytest", *others, *named)
    pytester.run(*command).assert_outcomes(passed=1)
    assert pytester.run(*command, "--pscdsl").ret == pytest.ExitCode.TESTS_FAILED


RUNNING = HEAD + (
    '@psc.kernel\ndef log(x: f32["n"]) -> f32["n"]:\n    return np.log(x)\n\n\n'
    "def test_log():\n    log(np.float32([1, -1]))\n\n\n"
    '@psc.kernel\ndef item(x: f32["n"], i: psc.i32) -> f32:\n    return x[i]\n\n\n'
    "def test_item():\n    item(np.float32([1, 2]), np.int32(2))\n"
)
LINES = ["E*test_log.py:8: return np.log(x)", "E*test_log.py:17: return x[[]i]"]


@pytest.mark.jaxlib
def test_running_kernels_are_checked(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ENTRY), str(ROOT))))
    plugin = () if INSTALLED else ("-p", "pytest_pscdsl")
    pytester.makepyfile(test_log=RUNNING)
    result = pytester.runpytest_subprocess(*plugin, "--psc-checks=nan")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["E*CheckFailed: NaN in the result of `log`", *LINES[:1]])
    result.stdout.no_fnmatch_line("*pscdsl/_src*")
    result = pytester.runpytest_subprocess(*plugin, "--psc-checks=nan, index", "-n", "1")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(LINES)


def test_checks_end_with_the_session(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "from pscdsl._src.support.effects import COMPILED\n\n\n"
        "def test_kinds():\n    assert not COMPILED.kinds\n"
    )
    before = COMPILED.kinds
    run(pytester, "--psc-checks=off").assert_outcomes(passed=1)
    assert COMPILED.kinds == before != frozenset()


def test_a_check_that_does_not_exist_is_an_error_of_usage(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--psc-checks=zero")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--psc-checks takes nan, inf, index or off, not 'zero'"])
