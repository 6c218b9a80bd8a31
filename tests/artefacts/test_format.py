"""Artefacts are read as data: what is not whole is refused, in words."""

from __future__ import annotations

import random
import zipfile
from pathlib import Path

import numpy as np
import pytest

import pscdsl as psc
from pscdsl._src.artefacts.format import MAGIC, packed, read, unpacked, written
from tests.fuzz.artefacts import KEY, Point, exported

DATA = exported()


def test_reading_and_writing_undo_each_other() -> None:
    assert written(read(DATA, KEY), KEY) == DATA
    assert exported() == DATA


def test_every_truncation_is_refused() -> None:
    for length in range(len(DATA)):
        with pytest.raises(psc.ArtefactError, match="cut off"):
            psc.load(DATA[:length], trust="anyone")


def test_every_changed_byte_is_refused() -> None:
    draw = random.Random(0)
    for place in range(len(DATA)):
        changed = bytearray(DATA)
        changed[place] ^= 1 << draw.randrange(8)
        with pytest.raises(psc.ArtefactError):
            psc.load(bytes(changed), trust=KEY)
    with pytest.raises(psc.ArtefactError, match="damaged"):
        psc.load(DATA + b"\0", trust=KEY)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "cut off before its first 8 bytes"),
        (b"def f(x): return x\n", "does not begin as an exported kernel does"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "does not begin"),
        (b"\x80\x04\x95" + bytes(50), "does not begin"),
        (MAGIC.replace(b"\r\n", b"\n") + DATA[8:], "does not begin"),
        (MAGIC + b"\xff" * 200, "damaged"),
        (DATA[:150] + bytes([DATA[150] ^ 1]) + DATA[151:], "damaged"),
        (packed([], [], KEY), "head does not say"),
        (packed({}, [], KEY), "head does not say"),
        (packed(None, [b"abc"], KEY), "head does not say"),
    ],
)
def test_foreign_files_are_refused(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "some.psca"
    path.write_bytes(content)
    with pytest.raises(psc.ArtefactError, match=told) as raised:
        psc.load(path, trust=KEY)
    assert str(path) in str(raised.value)


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(psc.ArtefactError, match=r"cannot be read: .*No such file"):
        psc.load(tmp_path / "nothing.psca")
    with pytest.raises(psc.ArtefactError, match="cannot be read"):
        psc.load(tmp_path)
    with pytest.raises(psc.ArtefactError, match="cannot be read"):
        psc.load("a\0b")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a", "b")
    with pytest.raises(psc.ArtefactError, match="does not begin"):
        psc.load(tmp_path / "a.zip")


def test_another_form_is_named() -> None:
    data = MAGIC + (7).to_bytes(4, "little") + DATA[12:]
    with pytest.raises(psc.ArtefactError, match="of form 7, or damaged; this pscdsl reads form 2"):
        psc.load(data)


def test_a_module_that_is_none_is_told_of_at_the_call() -> None:
    head, codes = unpacked(DATA, KEY)
    data = packed(head, [codes[:50], bytes(len(codes) - 50)], KEY)
    found = psc.load(data, trust=KEY)
    with pytest.raises(psc.ArtefactError, match="module of the artefact cannot be used"):
        found(Point(np.zeros(4, np.float32), np.float32(1)), 3)
