"""Two new processes that share a folder of compiled programs get what this process gets.

`python -m tests.fuzz.processes FOLDER` is such a process: it calls the kernel of `generated.py`
there with what `call.pickle` holds, and writes down the results.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import random
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pscdsl._src.frontend.definitions import Excluded
from tests.fuzz import reference
from tests.fuzz.laws import Broken, NDArray, array, built, definition, sizes_of
from tests.fuzz.model import Value
from tests.fuzz.programs import Program

ROOT = Path(__file__).parent.parent.parent
SOURCE, CALL, RESULTS, CACHE = "generated.py", "call.pickle", "results.pickle", "cache"
_SECONDS = 120


@dataclass(frozen=True)
class Call:
    """What a kernel is called with."""

    kernel: str
    arguments: tuple[Value, ...]
    statics: Mapping[str, Any]
    operands: Sequence[NDArray]


@dataclass(frozen=True)
class Results:
    """What came of it, and how many programs were compiled and found."""

    arrays: Sequence[NDArray]
    compiled: int
    found: int


def called(folder: Path, name: str) -> Results:
    """Load the module of a folder under a name, and call its kernel."""
    spec = importlib.util.spec_from_file_location(name, folder / SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for it
    try:
        spec.loader.exec_module(module)
        call: Call = pickle.loads((folder / CALL).read_bytes())
        kernel = getattr(module, call.kernel)
        found = kernel(*built(call.arguments, vars(module), call.statics, call.operands))
        arrays = [np.asarray(leaf) for leaf in reference.leaves(found)]
        counts = kernel.cache_info()
    finally:
        del sys.modules[name]
    return Results(arrays, counts.misses, counts.disk_hits)


def agree(program: Program, rng: random.Random) -> bool:
    """Call a kernel here and in two processes after each other; whether it could be called."""
    call = call_of(program, rng)
    if call is None:
        return False
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / SOURCE).write_text(program.text, encoding="utf-8")
        (folder / CALL).write_bytes(pickle.dumps(call))
        with compiled_in(folder / "own"):
            here = called(folder, f"generated_{os.getpid()}_{rng.randrange(10**9)}")
        first, second = _elsewhere(folder), _elsewhere(folder)
    for process, results in (("the first", first), ("the second", second)):
        if not _same(results.arrays, here.arrays):
            raise Broken(f"{process} process gets {results.arrays}, this one {here.arrays}")
    if first.compiled != here.compiled:
        raise Broken(f"the first process compiles {first.compiled}, this one {here.compiled}")
    if second.compiled or second.found != first.compiled:
        raise Broken(f"the second process compiles {second.compiled} and finds {second.found}")
    return True


def call_of(program: Program, rng: random.Random) -> Call | None:
    """A call that the signature admits."""
    kernel = definition(program)
    choices = kernel.signature.choices() or ()
    for choice in rng.sample(choices, len(choices)):
        try:
            function = kernel.instance(choice)
        except Excluded:
            continue
        for sizes in sizes_of(function, rng, 1):
            operands = [array(rng, each, sizes) for each in function.body.in_types]
            statics = {name: static.value for name, static in choice.statics}
            return Call(program.main.name, program.main.arguments, statics, operands)
    return None


def _elsewhere(folder: Path) -> Results:
    """The results of a new process."""
    command = [sys.executable, "-m", "tests.fuzz.processes", str(folder)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PSCDSL_CACHE": str(folder / CACHE)},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise Broken(f"a process ends with {done.returncode}: {done.stderr}")
    found: Results = pickle.loads((folder / RESULTS).read_bytes())
    (folder / RESULTS).unlink()
    return found


@contextmanager
def compiled_in(folder: Path) -> Generator[None]:
    """A context in which this process keeps compiled programs in a folder."""
    before = os.environ.get("PSCDSL_CACHE")
    os.environ["PSCDSL_CACHE"] = str(folder)
    try:
        yield
    finally:
        del os.environ["PSCDSL_CACHE"]
        if before is not None:
            os.environ["PSCDSL_CACHE"] = before


def _same(some: Sequence[NDArray], others: Sequence[NDArray]) -> bool:
    """Equal to the last bit."""
    return len(some) == len(others) and all(
        (x.shape, x.dtype) == (y.shape, y.dtype) and x.tobytes() == y.tobytes()
        for x, y in zip(some, others, strict=True)
    )


if __name__ == "__main__":
    # The classes of what is read are those of the module by its name, not of `__main__`.
    from tests.fuzz import processes

    given = Path(sys.argv[1])
    (given / RESULTS).write_bytes(pickle.dumps(processes.called(given, "generated")))
