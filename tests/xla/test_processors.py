"""How many processors XLA is taken to have."""

from __future__ import annotations

import pytest

from pscdsl._src.xla.runtime import boot


def test_how_many_processors_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    count = boot.processors.__wrapped__
    for given, found in (("1", 1), ("0", 1), (" 3 ", 3)):
        monkeypatch.setenv(boot.PROCESSORS_VARIABLE, given)
        assert count() == found
    monkeypatch.setenv(boot.PROCESSORS_VARIABLE, "many")
    assert count() >= 1
