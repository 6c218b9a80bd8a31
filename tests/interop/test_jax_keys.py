"""Random programs of `jax.random`: what we find is what jax's own check of keys finds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pscdsl._src.checker.check import check_source
from tests.interop.jax_key_programs import program

pytest.importorskip("jax")

ROOT = Path(__file__).parents[2]
PROGRAMS = 500


def test_keys_are_used_twice_where_jax_says_so() -> None:
    texts = [program(seed) for seed in range(PROGRAMS)]
    command = [sys.executable, "-m", "tests.interop.jax_key_outcomes"]
    done = subprocess.run(
        command, cwd=ROOT, input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    theirs: list[str] = json.loads(done.stdout)
    assert min(theirs.count("reused"), theirs.count("once")) > PROGRAMS // 5
    for text, outcome in zip(texts, theirs, strict=True):
        found = check_source(text, "program.py").diagnostics
        assert ("reused" if found else "once") == outcome, text
