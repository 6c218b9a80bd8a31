"""Files in the place of artefacts: what was made without the key is refused, heads may lie.

`python -m tests.campaign artefacts --programs 20000` tries so many of each kind, in processes that
have limits.  One is wrong if it is loaded and was made without the key, if it raises anything but
our own errors or gives arrays of other shapes, or if it ends the process or hangs.
"""

from __future__ import annotations

import copy
import random
import sys
from argparse import Namespace
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.artefacts.format import packed, unpacked
from pscdsl.typing.python_containers import is_dict, is_sequence, is_tuple
from tests.campaign.campaign import Campaign
from tests.campaign.outcomes import Outcome

KEY = bytes(range(32))
BATCH = 250
"""Mutants of each kind that one process tries."""
_MEMORY = 8 << 30


class Point(psc.Record):
    """A record."""

    x: f32["n"]
    y: f32


@psc.kernel
def small(p: Point, scale: psc.Static[int] = 2) -> Point:
    assert p.x.shape[0] % 2 == 0
    return Point(p.x * scale, p.y)


def exported() -> bytes:
    """The artefact of which there are mutants."""
    return small.export(None, {"n": 2}, {"n": 4}, scale=3, key=KEY)


def forgeries(data: bytes, draw: random.Random) -> Iterator[bytes]:
    """Whole artefacts with another content: all is made anew but the signature."""
    head, codes = unpacked(data, KEY)
    while True:
        changed = bytearray(codes)
        for _ in range(draw.randrange(4)):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        cut = bytes(changed[: draw.randrange(len(changed))])
        for content in (bytes(changed), cut, cut + bytes(changed), b""):
            made = bytearray(packed(head, [content], draw.randbytes(32)))
            if draw.random() < 0.5:  # the right signature of another content
                made[52:84] = data[52:84]
            yield bytes(made)


def damaged(data: bytes, draw: random.Random) -> Iterator[bytes]:
    """Bytes that are flipped, cut off, put in others' places, repeated and left out."""
    while True:
        a, b, c = sorted(draw.randrange(len(data) + 1) for _ in range(3))
        flipped = bytearray(data)
        for _ in range(draw.randrange(1, 9)):
            flipped[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        yield from (bytes(flipped), data[:a], data[a:], data[:a] + data[b:c] + data[a:b] + data[c:])
        yield from (data[:b] + data[a:], data[:a] + data[b:], draw.randbytes(c), data + data)


def without_key(data: bytes, seed: int, count: int) -> Iterator[bytes]:
    """So many files that whoever has the key has not made."""
    draw = random.Random(seed)
    kinds = [forgeries(data, draw), damaged(data, draw)]
    for turn in range(count):
        found = next(kinds[turn % 2])
        if found != data:
            yield found


WRONG: list[Any] = [
    *(None, True, -1, 0, 1, 5, 2**40, 2**70, 1.5, "", "n", "n+", "f64", "class", "1//0", "n" * 300),
    *([], {}, [[]], ["n"], [1, 2], {"kind": "array"}, {"kind": "none"}, {"n": 2}, {"float": "x"}),
    *({"tuple": [{"tuple": []}]}, {"kind": "static", "value": {"dtype": "np"}}, {"dtype": "Array"}),
    *("(" * 5000 + "n", "*".join(f"(a{i}+b{i})" for i in range(40)), "9" * 5000, "\ud800", "n\0"),
]


def _places(form: Any) -> Iterator[tuple[Any, Any]]:
    """Each list and dict in a head, with each place in it."""
    if not (is_dict(form) or is_sequence(form)):
        return
    parts = list(form) if is_dict(form) else list(range(len(form)))
    for part in parts:
        yield form, part
        yield from _places(form[part])


def lying(data: bytes, seed: int, count: int) -> Iterator[bytes]:
    """So many artefacts, signed, whose heads say something else."""
    head, codes = unpacked(data, KEY)
    draw = random.Random(seed)
    for _ in range(count):
        changed = copy.deepcopy(head)
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            _change(changed, draw)
        try:
            yield packed(changed, [codes], KEY)
        except UnicodeEncodeError:
            continue


def _change(head: Any, draw: random.Random) -> None:
    places = list(_places(head))
    if not places:
        return
    (form, part), (other, its) = draw.choice(places), draw.choice(places)
    kind = draw.randrange(6)
    if kind < 3:
        form[part] = draw.choice(WRONG)
    elif kind == 3:
        form[part] = copy.deepcopy(other[its])
    elif kind == 4:
        del form[part]
    else:
        form[part] = [form[part], *[copy.deepcopy(form[part])] * draw.randrange(2)]


def outcome(data: bytes) -> str:
    """What becomes of an artefact that is signed; raises what must not be raised."""
    p = Point(np.array([1, 2], np.float32), np.float32(3))
    try:
        found = psc.load(data, trust=KEY)
        result = found(p, 3)
    except psc.ArtefactError:
        return "refused"
    except psc.ArgumentError:
        return "does not take the arguments"
    parts = result if is_tuple(result) else [result.x, result.y]
    shapes = sorted(np.asarray(each).shape for each in parts)
    assert shapes == [(), (2,)], shapes
    return "computes"


def attempt(seed: int, _: Namespace) -> Iterator[Outcome]:
    """Try mutants of a seed, as many of each kind."""
    data = exported()
    for each in without_key(data, seed, BATCH):
        try:
            psc.load(each, trust=KEY)
        except psc.ArtefactError:
            yield Outcome("refused", "made without the key")
        else:
            yield Outcome("loaded", "made without the key", problem="loaded", text=each.hex())
    for each in lying(data, seed, BATCH):
        try:
            yield Outcome(outcome(each), "a head that lies")
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            yield Outcome("raises", "a head that lies", problem=why, text=each.hex())


@contextmanager
def limited() -> Generator[None]:
    """Limit the memory of this process, for good."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    yield


CAMPAIGN = Campaign(
    about="Files in the place of artefacts: so many without the key, so many whose heads lie.",
    attempt=attempt,
    texts=lambda seed, _: [f"mutants of seed {seed}"],
    default=20_000,
    programs=BATCH,
    chunk=1,
    seed=lambda given, place: given.seed * 1_000_003 + BATCH * place,
    around=limited,
)
