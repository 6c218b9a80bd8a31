"""How many processors XLA is taken to have."""

from __future__ import annotations

import pytest

from pscdsl._src.xla.runtime import settings


def test_how_many_processors_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    count = settings.processors.__wrapped__
    for given, found in (("1", 1), ("0", 1), (" 3 ", 3)):
        monkeypatch.setenv(settings.PROCESSORS_VARIABLE, given)
        assert count() == found
    monkeypatch.setenv(settings.PROCESSORS_VARIABLE, "many")
    assert count() >= 1
