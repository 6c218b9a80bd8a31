"""The page for users of JAX, run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents import ROOT, compare

pytest.importorskip("jax")


def test_what_the_blocks_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, update_golden: bool
) -> None:
    compare(ROOT / "docs/jax.md", tmp_path, monkeypatch, update_golden)
