"""Ways to write what a kernel captures: how the object is reached, times how it is written.

Each way is a program with a function `update` that writes, and a kernel that reads.  It counts if
running `update` changes what Python finds.  What is no program before some version of Python is
none of its ways.
"""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

HEAD: Final = """\
import bisect, builtins, collections, contextlib, contextvars, copy, enum, functools, gc, inspect
import itertools, operator, random, sys, types
import numpy as np
import pscdsl as psc
from pscdsl import f32

W = np.ones(3, np.float32)
V = np.full(3, 7, np.float32)
L = [1.0, 2.0]
S = 1.0


class C:
    r = 1.0


def same(q):
    return q


"""
_NEEDED: Final = {
    "H.": "class H:\n    a = W\n\n\n",
    "default": "def default(q=W, *, k=W):\n    return q\n\n\n",
    "give": "def give():\n    return W\n\n\n",
    "inner": (
        "def cell():\n    z = W\n\n    def inner():\n        return z\n\n    return inner\n\n\n"
        "inner = cell()\n"
    ),
    "REG": "REG = {'w': W}\n",
    "PAIR": "PAIR = (W, V)\n",
    "BOX": "BOX = types.SimpleNamespace(w=W)\n",
    "rows()": "def rows():\n    yield W\n\n\n",
    "E.A": "class E(enum.Enum):\n    A = W\n\n\n",
    "part": "part = functools.partial(same, W)\n",
    "Obj": (
        "class Obj:\n"
        "    def __radd__(self, q):\n        q[0] = 5.0\n        return 0\n\n"
        "    def __getitem__(self, q):\n        q[0] = 5.0\n        return 0\n\n"
        "    __array_ufunc__ = None\n\n"
        "    def __contains__(self, q):\n        q[0] = 5.0\n        return True\n\n\n"
    ),
}
_VIEWS: Final = """
W | W[:] | W[...] | W.view() | W.reshape(3) | W.ravel() | W.T | W.real | W.conj() | W.squeeze()
W.astype(np.float32, copy=False) | np.asarray(W) | np.asanyarray(W) | np.atleast_1d(W)
np.ascontiguousarray(W) | np.require(W) | np.ravel(W) | np.reshape(W, 3) | np.squeeze(W)
np.einsum('i->i', W) | np.trim_zeros(W) | np.real_if_close(W) | np.asarray_chkfinite(W)
np.array(W, copy=False) | np.ma.array(W, copy=False).data | np.ndarray((3,), np.float32, W)
np.frombuffer(W, np.float32) | np.broadcast_arrays(W)[0] | np.meshgrid(W, copy=False)[0]
np.split(W, 1)[0] | np.nan_to_num(W, copy=False) | np.lib.stride_tricks.as_strided(W)
W.__array__() | memoryview(W) | np.from_dlpack(W) | W.flat | np.flip(np.flip(W))
"""
_HOLDERS: Final = """
[W][0] | (W,)[0] | {'a': W}['a'] | dict(a=W)['a'] | same(W) | (lambda q: q)(W) | (W if S else V)
(q := W) | (W or V) | [q for q in [W]][0] | {1: q for q in []} or W | max([W], key=len)
sum([[W]], [])[0] | next(iter([W])) | copy.copy([W])[0] | functools.partial(same, W)()
operator.itemgetter(0)([W]) | list(map(same, [W]))[0] | next(itertools.repeat(W))
next(itertools.chain([W])) | types.SimpleNamespace(a=W).a | collections.deque([W])[0]
contextvars.ContextVar('v', default=W).get() | dict.fromkeys('a', W)['a'] | H.a | getattr(H, 'a')
vars(H)['a'] | H.__dict__['a'] | default() | default.__defaults__[0] | default.__kwdefaults__['k']
inner() | inner.__closure__[0].cell_contents | give() | REG['w'] | REG.get('w') | PAIR[0] | BOX.w
[*PAIR][0] | next(rows()) | E.A.value | E['A'].value | E(W).value | part() | part.args[0]
functools.reduce(lambda a, b: a, [W, V]) | operator.attrgetter('a')(H) | list(zip([W]))[0][0]
copy.replace(BOX, a=W).a | t'{W}'.values[0] | next(iter(t'{W}')).value | frozendict(a=W)['a']
[*q for q in [[W]]][0] | next((*q for q in [[W]])) | {**q for q in [{'a': W}]}['a']
functools.reduce(same, [], initial=W) | list(map(same, [W], strict=True))[0]
functools.partial(operator.getitem, functools.Placeholder, 0)([W])
"""
_NAMES: Final = """
globals()['W'] | globals().get('W') | sys.modules[__name__].W | getattr(sys.modules[__name__], 'W')
sys._getframe().f_globals['W'] | give.__globals__['W'] | vars(sys.modules[__name__])['W']
(g := globals)()['W'] | eval('W') | inspect.currentframe().f_globals['W'] | locals().get('W', W)
operator.itemgetter('W')(globals()) | sys.modules.get(__name__).W
"""
_WRITERS: Final = """
{x}[0] = 5.0
{x}[:] = 5.0
{x}[0], _ = 5.0, 1
{x}[0] += 4.0
a = {x}; a += 1
a = b = {x}; b[0] = 5.0
a, _ = {x}, 1; a[0] = 5.0
for a in [{x}]: a[0] = 5.0
for {x}[0] in [5.0]: pass
with contextlib.nullcontext({x}) as a: a[0] = 5.0
with contextlib.nullcontext(5.0) as {x}[0]: pass
np.copyto({x}, 5.0)
np.copyto(dst={x}, src=5.0)
np.exp(V, {x})
np.add(V, 1, {x})
np.add(V, 1, out={x})
np.add.at({x}, 0, 1)
np.clip(V, 0, 5, {x})
np.round(V, 0, {x})
np.put({x}, 0, 5.0)
np.put(a={x}, ind=0, v=5.0)
np.place(arr={x}, mask=[True] * 3, vals=[5.0])
np.fill_diagonal({x}.reshape(1, 3), 5.0)
V.clip(0, 5, {x})
V.dot(np.eye(3, dtype=np.float32), {x})
V.cumsum(0, None, {x})
V.take([0, 1, 2], 0, {x})
np.multiply.accumulate(V, 0, None, {x})
operator.setitem({x}, 0, 5.0)
operator.iadd({x}, 1)
getattr({x}, '__setitem__')(0, 5.0)
np.random.default_rng(0).random(3, np.float32, {x})
exec('a[0] = 5.0', {{'a': {x}}})
list(map(lambda a: operator.setitem(a, 0, 5.0), [{x}]))
[operator.setitem(a, 0, 5.0) for a in [{x}]]
np.nditer({x}, op_flags=['readwrite']).operands[0][0] = 5.0
{x} + Obj()
Obj()[{x}]
{x} in Obj()
"""
_REBINDERS: Final = """
global S; S = 5.0
global S; S += 4.0
global S; [S := 5.0]
global S; (S := 5.0)
global S; S, _ = 5.0, 1
global S; from math import pi as S
globals()['S'] = 5.0
globals().update(S=5.0)
globals().__setitem__('S', 5.0)
g = globals; g()['S'] = 5.0
operator.setitem(globals(), 'S', 5.0)
dict.update(globals(), S=5.0)
same(globals)()['S'] = 5.0
[f for f in [globals]][0]()['S'] = 5.0
builtins.globals()['S'] = 5.0
getattr(builtins, 'globals')()['S'] = 5.0
eval('globals()')['S'] = 5.0
exec('S = 5.0', globals())
exec('global S; S = 5.0')
(lambda: exec('S = 5.0', globals()))()
give.__globals__['S'] = 5.0
sys._getframe().f_globals['S'] = 5.0
inspect.currentframe().f_globals['S'] = 5.0
inspect.stack()[0].frame.f_globals['S'] = 5.0
sys.modules[__name__].S = 5.0
sys.modules[__name__].__dict__['S'] = 5.0
vars(sys.modules[__name__])['S'] = 5.0
setattr(sys.modules[__name__], 'S', 5.0)
type(sys).__setattr__(sys.modules[__name__], 'S', 5.0)
object.__setattr__(sys.modules[__name__], 'S', 5.0)
__import__(__name__).S = 5.0
import importlib; importlib.import_module(__name__).S = 5.0
import sys as me; me.modules[__name__].S = 5.0
for sys.modules[__name__].S in [5.0]: pass
with contextlib.nullcontext(5.0) as sys.modules[__name__].S: pass
from unittest import mock; mock.patch.object(sys.modules[__name__], 'S', 5.0).start()
from unittest import mock; mock.patch(__name__ + '.S', 5.0).start()
[o for o in gc.get_referrers(C) if type(o) is dict and 'S' in o][0]['S'] = 5.0
"""
_CLASS: Final = """
C.r = 5.0
C.r += 4.0
q, C.r = 1, 5.0
del C.r; C.r = 5.0
for C.r in [5.0]: pass
with contextlib.nullcontext(5.0) as C.r: pass
setattr(C, 'r', 5.0)
type.__setattr__(C, 'r', 5.0)
k = C; k.r = 5.0
type(C()).r = 5.0
C().__class__.r = 5.0
globals()['C'].r = 5.0
same(C).r = 5.0
[C][0].r = 5.0
object.__getattribute__(C(), '__class__').r = 5.0
exec('C.r = 5.0')
operator.attrgetter('C')(sys.modules[__name__]).r = 5.0
(lambda q: setattr(q, 'r', 5.0))(C)
n = 'r'; setattr(C, n, 5.0)
"""
LIST_WRITERS: Final = """
{x}.append(5.0)
{x}[0] = 5.0
{x} += [5.0]
{x}.__iadd__([5.0])
del {x}[0]
{x}[:] = []
{x}.sort(key=lambda q: -q)
bisect.insort({x}, 5.0)
list.append({x}, 5.0)
list(map({x}.append, [5.0]))
f = {x}.append; f(5.0)
getattr({x}, 'append')(5.0)
operator.iconcat({x}, [5.0])
operator.methodcaller('append', 5.0)({x})
iter({x}).__reduce__()[1][0].append(5.0)
"""


class Way(NamedTuple):
    """A program that writes what its kernel reads."""

    kind: str
    label: str
    text: str
    name: str
    """What is read: a name of the module."""


def _split(table: str) -> list[str]:
    return [each.strip() for line in table.strip().splitlines() for each in line.split(" | ")]


PATHS: Final = (*_split(_VIEWS), *_split(_HOLDERS), *_split(_NAMES))
WRITERS: Final = tuple(_WRITERS.strip().splitlines())


def program(body: str, value: str) -> str:
    """A module with a function of this body, and a kernel that multiplies by a value."""
    needed = "".join(text for word, text in _NEEDED.items() if word in body)
    update = f"def update():\n    {body}\n\n\n"
    return f'{HEAD}{needed}{update}@psc.kernel\ndef f(x: f32["3"]):\n    return x * {value}\n'


def ways() -> Iterator[Way]:
    """All ways, whether they write or not."""
    for path in PATHS:
        for writer in WRITERS:
            yield Way("array", f"{path} | {writer}", program(writer.format(x=path), "W"), "W")
    for path in ("L", "[L][0]", "same(L)", "(L or W)", "globals()['L']", "copy.copy([L])[0]"):
        for writer in LIST_WRITERS.strip().splitlines():
            body = writer.format(x=path)
            yield Way("list", body, program(body, "L[0]"), "L")
    for writer in _REBINDERS.strip().splitlines():
        yield Way("name", writer, program(writer, "S").replace("return W", "return V"), "S")
    for writer in _CLASS.strip().splitlines():
        yield Way("class", writer, program(writer, "C.r"), "C")


def writes(way: Way) -> bool:
    """Whether running the way changes what Python finds; False if it is no program."""
    module = types.ModuleType("captured_way")

    def read() -> str:
        value = module.__dict__.get(way.name)
        return repr(getattr(value, "r", None) if way.name == "C" else value)

    sys.modules[module.__name__] = module
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(way.text, "way.py", "exec", dont_inherit=True), module.__dict__)
            before = read()
            try:
                module.update()
            except Exception:
                pass
            return read() != before
    except Exception:
        return False
    finally:
        del sys.modules[module.__name__]
        np.seterr()
