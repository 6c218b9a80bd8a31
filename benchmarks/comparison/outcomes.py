"""What jax says when it runs a program and those with mistakes; needs jax and jaxtyping.

`python -m benchmarks.comparison.outcomes PROGRAM FOLDER` reads `PROGRAM_base.py` and
`PROGRAM_0.py` to `PROGRAM_4.py` there, and prints JSON.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.comparison.program import Program
from benchmarks.comparison.programs import PROGRAMS

jax: Any = importlib.import_module("jax")

OPTIONS = {
    "jax_numpy_dtype_promotion": "strict",
    "jax_numpy_rank_promotion": "raise",
    "jax_debug_key_reuse": True,
    "jax_debug_nans": True,
}
"""Checks that jax makes if asked to."""

SAME, WRONG, ERROR = "runs fine", "wrong result, silently", "error when run"


def main(name: str, folder: Path) -> None:
    """All outcomes of a program."""
    program = next(each for each in PROGRAMS if each.name == name)
    jax.config.update("jax_enable_x64", program.wide)
    base = folder / f"{name}_base.py"
    expected = {differ: results(program, base, differ) for differ in (False, True)}
    usable = {
        option: value
        for option, value in OPTIONS.items()
        if outcome(program, base, True, expected[True], {option: value})[0] == SAME
    }
    found: list[dict[str, Any]] = []
    for i in range(len(program.mistakes)):
        path = folder / f"{name}_{i}.py"
        found.append(
            {
                "equal": outcome(program, path, False, expected[False], {}),
                "differ": outcome(program, path, True, expected[True], {}),
                "options": outcome(program, path, True, expected[True], usable),
            }
        )
    json.dump({"options": list(usable), "mistakes": found}, sys.stdout)


def outcome(
    program: Program,
    path: Path,
    differ: bool,
    expected: Sequence[np.ndarray],
    options: dict[str, Any],
) -> tuple[str, str]:
    """What comes of a text, and the error if there is one."""
    before = {option: getattr(jax.config, option) for option in options}
    for option, value in options.items():
        jax.config.update(option, value)
    try:
        found = results(program, path, differ)
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        return ERROR, f"{type(error).__name__}: {lines[0]}"
    finally:
        for option, value in before.items():
            jax.config.update(option, value)
    same = len(found) == len(expected) and all(map(alike, found, expected))
    return (SAME if same else WRONG), ""


def results(program: Program, path: Path, differ: bool) -> Sequence[np.ndarray]:
    """All arrays that a text's functions give, called twice, as one does."""
    module = loaded(path)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [leaf for _ in range(2) for leaf in called(program.calls, module, differ)]


def called(calls: Callable[..., Any], module: Any, differ: bool) -> Iterator[np.ndarray]:
    """The arrays that come out, on arrays of jax as arguments."""
    for name, arguments in calls(module, differ):
        on_device = [
            each if isinstance(each, int) else jax.tree.map(jax.numpy.asarray, each)
            for each in arguments
        ]
        for leaf in jax.tree.leaves(getattr(module, name)(*on_device)):
            yield np.asarray(leaf)


def alike(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two results are the same up to rounding."""
    tolerance = 1e-3 if y.dtype == np.float32 else 1e-8
    return (
        x.shape == y.shape
        and x.dtype == y.dtype
        and bool(np.allclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True))
    )


def loaded(path: Path) -> Any:
    """A text as a fresh module."""
    jax.clear_caches()
    spec = importlib.util.spec_from_file_location(f"compared_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
