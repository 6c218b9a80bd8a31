"""What NumPy programmers write in several lines, as templates for random programs.

`$y` and `$z` are vectors of one size that the program has made, `$n` that size, `$a` a matrix and
`$q` a square one.  `$T` and `$U` are new names for vectors, `$N` and `$M` for numbers, which the
rest of the program sees; `$f`, `$g`, `$i`, `$j`, `$l` and `$b` are new names that it does not see.
`$e` is a number, `$c` a condition, `$v` a vector, `$x` an index; BLOCK is a random statement.
"""

from __future__ import annotations

import re

from tests.fuzz.numpy_containers import Containers
from tests.fuzz.numpy_values import Array

TEMPLATES = """
$T = $y
for $i in range($n):
    $y[$i] += $e
    $T[$x] = $e
    $T = $z
---
$T = $y
for $i in range(3):
    $T[0] += 1.0
    BLOCK
    $T = $y if $c else $z
---
$T = $y
for $i in range($n):
    if $c:
        $T = $T.copy()
    $T[$i] = $e
---
$T = $y.copy()
for $i in range(3):
    $T[1:] = $y[:-1]
    $T[0] = $e
    $y, $T = $T, $y
---
$T = $y.copy()
for $i in range($n):
    $T[:] = $y[::-1]
    BLOCK
    $T, $y = $y, $T
    $y[$i] = $e
---
$T = $y[::-1]
if $c:
    $y = $v
$T[0] = $e
$y[0] = $e
---
$T = $y[1:]
for $i in range(2):
    $T[:] = $e
    $y = $z
    $T = $y[1:]
    $T += 1.0
$T = $y
---
$l = $a[0]
for $i in range(len($a)):
    $l[0] += $a[$i, 0]
    $a[$i, -1] = $e
    $l = $a[$i]
---
for $i in range($n):
    for $j in range($n - 1 - $i):
        if $y[$j] > $y[$j + 1]:
            $y[$j], $y[$j + 1] = $y[$j + 1], $y[$j]
---
for $i in range(1, $n):
    $M = $y[$i]
    $j = $i - 1
    while $j >= 0 and $y[$j] > $M:
        $y[$j + 1] = $y[$j]
        $j -= 1
    $y[$j + 1] = $M
$M = $y[0]
---
for $i in range(1, $n):
    $y[$i] = ($y[$i] + $y[$i - 1]) % 7
---
for $i in range($n):
    $y[c[$i]] += 1.0
    $z[$i] = $y[c[$i]] % 5
---
for $b in range(n):
    for $i in range(n):
        for $j in range(n):
            $q[$i, $j] = min($q[$i, $j], $q[$i, $b] + $q[$b, $j])
---
for $i in range(n):
    $q[$i + 1:, $i] %= 3
    $q[$i + 1:, $i + 1:] -= np.outer($q[$i + 1:, $i], $q[$i, $i + 1:])
    np.clip($q, -9, 9, out=$q)
---
for $i in range(n):
    for $j in range($i):
        $q[$i, $j], $q[$j, $i] = $q[$j, $i], $q[$i, $j]
---
for $i in range(1, len($a)):
    for $j in range(1, $a.shape[1]):
        if $a[$i - 1, $j] > $a[$i, $j - 1]:
            $a[$i, $j] = $a[$i - 1, $j]
        else:
            $a[$i, $j] = max($a[$i, $j - 1], $a[$i, $j])
---
for $i in range(len($a) // 2):
    $a[$i], $a[-1 - $i] = $a[-1 - $i], $a[$i].copy()
---
for $i in range($n):
    $y[:$i] += $y[$i]
    $y[$i:] = np.clip($y[$i:], -9, 9)
---
$N = -1.0
for $i in range($n):
    if $y[$i] > $e:
        $N = $y[$i]
        break
else:
    $y[0] = $e
---
$N = 0
for $i in range(1, $n):
    if $y[$i] > $y[$N]:
        $N = $i
$y[$N] = $e
---
$N = $e
while $N > 1:
    $N = $N // 2
    $y[0] += 1.0
    if $y[-1] < 0:
        continue
    $y[-1] -= 1.0
---
$N = 0.0
for $i in range(6):
    if $y[$i % $n] < 0:
        continue
    $N += $y[$i % $n]
    $y[$i % $n] -= 2.0
    if $N > 9:
        break
---
$N = 0.0
for $i in range($n):
    for $j in range($n):
        if $y[$j] > $z[$i]:
            break
        $N += 1.0
        $y[$j] += 1.0
    else:
        $z[$i] = $N
---
$l = [$y, $z, $y.copy()]
for $i in range(3):
    $l[$i][0] += 1.0
    $l[$i - 1] = $l[$i]
$T = $l[0] - $l[1]
---
$l = []
for $i in range(3):
    $y[$i % $n] += 1.0
    $l.append($y)
$y[0] = $e
$T = $l[0] + $l[-1] * 10.0
---
$l = []
for $i in range($n):
    $l.append($y[$i] + $e)
    $y[$i] = $e
$T = np.array($l)
---
$l = [$y]
if $c:
    $l.append($z)
$l[-1][0] = $e
---
$l = [$v, $z]
$b = $l
$b[0] += 1.0
$b.append($y)
$l[2][0] = $e
$T = sum($l)
---
$l = [[$y, $z], [$z]]
$l[0][1][0] = $e
$l[1] += $l[0]
$l[1][-1][:1] = $e
---
$l = {"u": $y, "v": $y}
for $b, $i in $l.items():
    $i += 1.0
$l["u"] = $l["v"] + $l["u"]
$T = $l.pop("u")
$T[0] = $e
---
$b = $y > $e
$y[$b] = $e
$b[0] = True
$y[~$b] += 1.0
---
$b = $y > $e
$y[$b] = $z[$b] - 1.0
$z[$b] += $y[$b]
---
$b = $y > $e
$N = $y[$b].sum() + $z[$b].sum()
$b &= $z > 0
$y[$b] *= 0.0
---
$b = np.ones($n, dtype=bool)
for $i in range($n):
    $b[$i::2] = $y[$i] > 0
$T = np.where($b, $y, $z)
---
$l = np.zeros(())
$b = $l
$l += $e
$b[...] = $b + 1.0
$N = $l + 0.0
---
$l = $y[0, ...]
$l[...] = $e
$N = $l + $y[0]
---
$N = $e
def $f(v):
    nonlocal $N
    $N += v
    $y[0] = $N
    return $N
$M = $f(1.0) + $N + $f(2.0)
---
def $f(v):
    $y[0] = v
    return $y
$T = $y
$y = $z
$U = $f($e)
---
def $f(v, rest=$y):
    rest[-1] += v
    return rest
$y = $z * 1.0
$T = $f($e)
$U = $f($e)
---
$l = [lambda: $y[0] + $i for $i in range(3)]
$y[0] = $e
$N = $l[0]() + $l[2]()
---
def $f(p, r):
    return r, p
$y, $T = $f($y, $z)
$T[0] = $e
---
def $f(z):
    z[0] += 1.0
    return 0
$y[$f($y)] = $y[0] * 2.0
$y[$f($z)] += $z[0]
---
def $f(z, v):
    z[-1] += 1.0
    return z[-1] > v
if $f($y, 1.0) and $f($y, 2.0) or not $f($z, 0.0):
    $y[0] = $e
---
def $f(*zs, **named):
    zs[0][0] = $e
    named["w"][-1] = zs[-1][0]
$f(*[$y, $z], w=$y)
---
def $f(z, depth):
    z[0] += 1.0
    return z if depth == 0 else $f(z[::-1], depth - 1)
$T = $f($y, 3)
---
$T = $y if $c else $z
$T[0] = $e
$y[-1] = $e
---
$y[:], $z[:] = $z, $y
---
$y[:], $T = $z, $y
$T[0] = $e
---
$T = np.stack([$y, $z])[0]
$y[0] = $e
$T[-1] = $e
---
$i = slice(1, None)
$y[$i] += $e
$j = np.array([0, -1])
$y[$j] = $z[$j] + 1.0
---
$i = ($x, ...)
$y[$i] = $e
$y[None, :][0, 0] = $e
---
for $y[0] in $z:
    $y[-1] += $y[0]
np.clip($y, -9, 9, out=$y)
---
for $T in ($y, $z, $y):
    $T += 1.0
    $y = $z
$T[0] = $e
---
$N = 0.0
for $i in $y:
    $y[::-1] += 1.0
    $N += $i
---
$N = 0.0
for $i in $y:
    $y = $z
    $N += $i
    $y[0] = $e
---
for $i, $j in zip($y[1:], $y[:-1]):
    $y[:1] += $i - $j
np.clip($y, -9, 9, out=$y)
---
$l = $a.T
$l[0] = $e
$a += 1.0
$l[-1, 0] = $a[0, 0]
---
$l = $a[::-1, ::-1][1:]
$l[:, 0] = $e
$a[-1][::-1] += 1.0
---
for $i in $a:
    $i[::-1] = $i
    for $j in $a.T:
        $j[0] += $i[0]
np.clip($a, -9, 9, out=$a)
---
for $i in range(1, len($a)):
    $a[$i] += $a[$i - 1]
    $l = $a[$i]
    $l %= 5
---
$y[$y.argmax()] = $e
$y[np.argsort($z)] = $y.copy()
---
$y[:] = $y + np.add($y, 1.0, out=$y)
np.clip($y, -9, 9, out=$y)
---
$T = psc.grad(lambda v: (v * $y).sum() + v[0] * $z[-1])($z)
$y[0] = $e
---
def $f(v):
    t = $y.copy()
    t[0] = t[-1] + 2.0
    return (v * t).sum()
$y[-1] = $e
$T = psc.grad($f)($z)
---
def $f(v):
    t = np.zeros_like(v)
    for j in range(len(v)):
        t[j] = v[j] * $y[j]
    return t.sum()
$T = psc.grad($f)($y)
$y[0] = $e
---
def $f(v):
    $y[0] = 1.0
    return (v * $y).sum()
$T = psc.grad($f)($z)
---
$i = 0
while $i < $n:
    $y[$i] -= 1.0
    if $y[$i] < 0:
        $i += 1
        continue
    $z[$i] = $y[$i]
    $i += 2
---
$l = None
for $i in range($n):
    if $y[$i] > 0 and $l is None:
        $l = $y[$i]
$N = 0.0 if $l is None else $l
---
$l = $y.tolist()
$y[0] = $e
$N = $l[0] + $y[0]
---
$T = np.empty($n)
for $i in range($n):
    $T[$i] = $y[-1 - $i] + $e
$y[:] = $T
$T[0] = $e
""".strip().split("\n---\n")

MAYBE_VIEWS = """
np.asarray($y); np.atleast_1d($y); $y.astype(np.float64); $y.astype(np.float64, copy=False);
np.squeeze($y); np.ascontiguousarray($y); np.array($y, copy=False); np.array($y); np.copy($y);
$y.view(); $y.real; np.real($y); +$y; $y.conj(); np.conjugate($y); $y.round();
np.nan_to_num($y); np.nan_to_num($y, copy=False); np.flip($y); np.flipud($y); np.roll($y, 1);
$y.reshape(-1); $y.reshape($y.shape); np.reshape($y, -1); $y.ravel(); np.ravel($y);
$y.flatten(); np.sort($y); np.einsum("i->i", $y); np.broadcast_to($y, $y.shape);
np.moveaxis($y, 0, 0); $y.transpose(); np.expand_dims($y, 0)[0]; $y[None][0];
$y[:, None][:, 0]; np.split($y, 1)[0]; $y.squeeze(); np.clip($y, None, 9); $y.T;
np.positive($y); np.concatenate([$y]); np.hstack([$y, $y])[1:][:$n]; np.minimum($y, $y);
np.where($y == $y, $y, $y); np.add($y, 0.0); $y[np.arange($n)]; $y[$y == $y];
np.take($y, np.arange($n)); np.broadcast_arrays($y, $y)[0]; np.diag(np.diag($y));
$y.__array__(); np.asanyarray($y); np.require($y); $y.cumsum() * 0.0 + $y;
np.diagonal(np.diag($y)); $y.copy(); np.vstack([$y])[0]; np.atleast_2d($y)[0];
np.array([$y])[0]; (lambda e: e)($y); [$y][0]; ($y,)[-1]; {"u": $y}["u"]; max([$y], key=len);
next(iter([$y])); list((($y), $z))[0]; dict(u=$y)["u"]; np.swapaxes($y[None], 0, 1)[:, 0];
np.trim_zeros($y); np.resize($y, $n); np.delete($y, []); np.append($y, []); np.tile($y, 1);
np.repeat($y, 1); np.pad($y, 0); np.stack([$y])[0]
"""
"""Expressions that are equal to `$y`: itself, a view of it, or a copy."""


class Idioms(Containers):
    """Writes statements from templates, too."""

    def enable(self) -> None:
        """Choose statements, and some templates."""
        super().enable()
        self.chosen = self.rng.sample(TEMPLATES, 12)
        if self.chance(0.5):
            self.enabled += [self.idiom] * self.rng.choice((1, 3, 9))
        if self.chance(0.2):
            self.enabled += [self.maybe_view] * self.rng.choice((1, 3, 9))

    def idiom(self) -> bool:
        """A template, filled."""
        return self.filled(self.rng.choice(self.chosen))

    def maybe_view(self) -> bool:
        """What may be a view, and a store into it or into what it may be a view of."""
        views = [each.strip() for each in MAYBE_VIEWS.split(";")]
        stores = (
            "$y[0] = $e",
            "$y += 1.0",
            "$T[0] = $e",
            "$T[-1] += 1.0",
            "$T.sort()",
            "$y[:] = 2",
        )
        first, second = self.rng.choice(stores), self.rng.choice(stores)
        return self.filled(f"$T = {self.rng.choice(views)}\n{first}\n{second}")

    def filled(self, template: str) -> bool:
        """Write a template with names of the scope; False if it has none that fit."""
        if self.nested > 1 or not self.least:
            return False
        names: dict[str, str] = {}
        own = [each for each in self.vectors() if each.own and each.name not in self.locked]
        own = [each for each in own if each.dtype == "f64" and "?" not in each.shape]
        vectors = [each for each in own if len(each.shape) == 1 and self.at_least(each.shape[0])]
        if "c[" in template:
            vectors = [each for each in vectors if each.shape == ("n",)]
            if not any(each.name == "c" for each in self.scope.arrays):
                return False
        y = self.rng.choice(vectors) if vectors else None
        if y is None:
            return False
        same = [each for each in vectors if each.shape == y.shape]
        names |= {"y": y.name, "z": self.rng.choice(same).name, "n": y.shape[0]}
        for letter, fits in (("a", lambda s: True), ("q", lambda s: s == ("n", "n"))):
            if f"${letter}" in template:
                matrices = [each for each in own if len(each.shape) == 2 and fits(each.shape)]
                if not matrices:
                    return False
                names[letter] = self.rng.choice(matrices).name
        seen = dict.fromkeys(re.findall(r"\$([TUNMfgijlb])", template))
        names |= {letter: self.name(letter.lower()) for letter in seen}
        for line in template.split("\n"):
            self.template_line(line, names, y)
        for letter in seen:
            if letter in "TUNM":
                self.scope.arrays.append(
                    Array(names[letter], "f64", y.shape if letter in "TU" else ())
                )
        return True

    def template_line(self, line: str, names: dict[str, str], y: Array) -> None:
        """Write one line of a template."""
        text = line.lstrip()
        depth, self.depth = self.depth, self.depth + (len(line) - len(text)) // 4
        if text == "BLOCK":
            with self.block():
                self.depth -= 1
                self.statements(1)
        else:
            self.line(re.sub(r"\$([a-zA-Z])", lambda found: self.hole(found[1], names, y), text))
        self.depth = depth

    def hole(self, letter: str, names: dict[str, str], y: Array) -> str:
        """What is written in a hole of a template."""
        if letter in names:
            return names[letter]
        if letter == "e":
            return self.bounded("f64", (), 1)
        if letter == "c":
            return self.condition(1)
        if letter == "v":
            return self.bounded("f64", y.shape, 1)
        return self.index(y.shape[0])
