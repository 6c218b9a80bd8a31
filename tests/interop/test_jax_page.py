"""The page for users of JAX, run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.documents import ROOT, compare

jax: Any = pytest.importorskip("jax")


def test_what_the_blocks_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, update_golden: bool
) -> None:
    with jax.enable_x64(False):  # as it is in a new process; other tests switch it on
        compare(ROOT / "docs/tutorial/from-jax.md", tmp_path, monkeypatch, update_golden)
