"""What NumPy programmers write in several lines without a loop, as templates.

`$y` and `$z` are vectors of one size that the program has made, `$n` that size, `$a` a matrix and
`$q` a square one.  `$T` and `$U` are new names for vectors, `$N` and `$M` for numbers, which the
rest of the program sees; `$f`, `$g`, `$i`, `$j`, `$l` and `$b` are new names that it does not see.
`$e` is a number, `$c` a condition, `$v` a vector, `$x` an index; BLOCK is a random statement.
"""

STRAIGHT = """
$T = $y[::-1]
if $c:
    $y = $v
$T[0] = $e
$y[0] = $e
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
$l = $a.T
$l[0] = $e
$a += 1.0
$l[-1, 0] = $a[0, 0]
---
$l = $a[::-1, ::-1][1:]
$l[:, 0] = $e
$a[-1][::-1] += 1.0
---
$y[$y.argmax()] = $e
$y[np.argsort($z, kind="stable")] = $y.copy()
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
    $y[0] = 1.0
    return (v * $y).sum()
$T = psc.grad($f)($z)
---
$l = $y.tolist()
$y[0] = $e
$N = $l[0] + $y[0]
---
$T = np.array([$y[$i] + 1.0 for $i in range($n)])
$y[0] = $e
---
$N = sum($y[$i] for $i in range($n) if $y[$i] > 0)
$y[0] = $e
---
$l = [e for e in [$y, $z]]
$l[0][0] = $e
$l = [e * 2.0 for e in $l]
$y[-1] = $e
$T = $l[0] + $l[1]
---
$l = {key: e for key, e in zip("uv", [$y, $z])}
$l["u"][0] = $e
$l["v"] += 1.0
del $l["u"]
---
$l = min([$y, $z], key=np.sum)
$l[0] = $e
---
$T = $y.copy() if $c else $y
$T[0] = $e
$y[-1] += 1.0
---
$a[[0, -1]] = $a[[-1, 0]]
$a[:, [0, -1]] += 1.0
$a[[0, -1], [0, 0]] = $e
$a[$a > 3] = $e
---
np.add($a[0], 1.0, out=$a[-1])
$a.flat[::2] = $e
$a[..., 0] = $a[..., -1]
---
$z[:] = $y
np.subtract($z, $y[::-1], out=$y)
$y[:] = np.maximum($y, $z, out=$z)
---
$l = $y.astype(np.int64)
$l[0] = 3
$l += 1
$N = $l[-1] + 0.5
$y += $l
---
$l = None
if $c:
    $l = $y
if $l is not None:
    $l[0] = $e
---
try:
    $y[0] = $e
finally:
    $y[-1] += 1.0
---
with psc.scope("part"):
    $T = $y[::-1]
    $T[0] = $e
---
def $f(i, t):
    return t + $y[0]
$y[0] = $e
$N = psc.fori_loop(0, 3, $f, $z[0] * 1.0)
$y[0] = $e
---
$T = psc.cond($y[0] > 0, lambda: $y * 1.0, lambda: $z * 2.0)
$y[0] = $e
---
$T = psc.update($y, 0, $e)
$y[-1] = $e
$T[-1] = $e
---
$y[0] = $e
$T = psc.map(lambda v: v + $y[0], $z)
$y[0] = $e
---
if $y[0] > $z[0]:
    $y[0] = $z[0]
elif $y[0] < $z[0]:
    $y, $z = $z, $y
else:
    $T = $y
$T = $z
$T[0] = $e
---
if $c:
    $l = $y
    $l[0] = $e
else:
    $l = $z
BLOCK
$l[-1] = $e
$y[0] += 1.0
---
if $c:
    $T = $y
    $b = $y[::-1]
else:
    $T = $z.copy()
    $b = $T
$b[0] = $e
$T[-1] = $e
---
$b = np.array([0, 0, -1])
$y[$b] += 1.0
$y[$b] = np.array([1.0, 2.0, 3.0])
np.add.at($y, $b, 1.0)
---
$y[$y > 0], $N = $e, $y[0]
---
$y[0] = $N = $e
$N += 1.0
---
$N = ($y[0] if $c else $z[0]) + ($y.sum() if $y[0] > 0 else 1.0)
""".strip().split("\n---\n")

MAYBE_VIEWS = """
np.asarray($y); np.atleast_1d($y); $y.astype(np.float64); $y.astype(np.float64, copy=False);
np.squeeze($y); np.ascontiguousarray($y); np.array($y, copy=False); np.array($y); np.copy($y);
$y.view(); $y.real; np.real($y); +$y; $y.conj(); np.conjugate($y); $y.round(); np.nan_to_num($y);
np.nan_to_num($y, copy=False); np.flip($y); np.flipud($y); np.roll($y, 1); $y.reshape(-1);
$y.reshape($y.shape); np.reshape($y, -1); $y.ravel(); np.ravel($y); $y.flatten(); np.sort($y);
np.einsum("i->i", $y); np.broadcast_to($y, $y.shape); np.moveaxis($y, 0, 0); $y.transpose();
np.expand_dims($y, 0)[0]; $y[None][0]; $y[:, None][:, 0]; np.split($y, 1)[0]; $y.squeeze();
np.clip($y, None, 9); $y.T; np.positive($y); np.concatenate([$y]); np.hstack([$y, $y])[1:][:$n];
np.minimum($y, $y); np.where($y == $y, $y, $y); np.add($y, 0.0); $y[np.arange($n)]; $y[$y == $y];
np.take($y, np.arange($n)); np.broadcast_arrays($y, $y)[0]; np.diag(np.diag($y)); $y.__array__();
np.asanyarray($y); np.require($y); $y.cumsum() * 0.0 + $y; np.diagonal(np.diag($y)); $y.copy();
np.vstack([$y])[0]; np.atleast_2d($y)[0]; np.array([$y])[0]; (lambda e: e)($y); [$y][0];
($y,)[-1]; {"u": $y}["u"]; max([$y], key=len); next(iter([$y])); list((($y), $z))[0];
dict(u=$y)["u"]; np.swapaxes($y[None], 0, 1)[:, 0]; np.trim_zeros($y); np.resize($y, $n);
np.delete($y, []); np.append($y, []); np.tile($y, 1); np.repeat($y, 1); np.pad($y, 0);
np.stack([$y])[0]; sorted([$y], key=len)[0]; functools.reduce(lambda e, _: e, [$y, $z]);
[*zip([$y])][0][0]; list(map(lambda e: e, [$y]))[0]; {"u": $y}.get("u");
{"u": $y}.setdefault("v", $y); {"u": $y}.pop("u"); [$y].pop(); [$y].copy()[0]; tuple([$y])[0];
dict(zip("u", [$y]))["u"]; [e for e in [$y]][0]; list({"u": $y}.values())[0]; [$y, $z][:1][0];
([$y] + [$z])[0]; ([$y] * 2)[1]; list(reversed([$z, $y]))[0]; list(enumerate([$y]))[0][1];
min([$y, $y], key=lambda e: 0); (lambda *e: e)($y)[0]; (lambda **e: e)(u=$y)["u"];
getattr($y, "T"); $y.T.T; $y.view(np.float64); $y.swapaxes(0, 0); np.transpose($y);
np.atleast_3d($y)[0, :, 0]; np.array_split($y, 1)[0]; np.squeeze($y[None]); $y[...]; $y[()];
np.fliplr($y[None])[0][::-1]; np.asfortranarray($y); np.real_if_close($y);
np.ravel($y, order="K"); $y.astype(float); $y.astype("f8", copy=False); $y[None].mT[:, 0];
np.where(True, $y, $y); np.select([$y == $y], [$y]); np.array($y, ndmin=2)[0];
np.array($y, copy=None); np.asarray($y, dtype=float); np.asarray($y, copy=True);
np.astype($y, float, copy=False); np.block([$y]); np.insert($y, 0, 1.0)[1:];
np.maximum.reduce([$y]); np.sum([$y], axis=0); np.sum($y[None], axis=0);
np.einsum("ij->j", $y[None]); np.einsum("i...->i...", $y); np.meshgrid($y, copy=False)[0];
np.rot90($y[None], 2)[0][::-1]; np.split($y[None], 1)[0][0]; np.max($y[None], axis=0);
np.cumsum($y[None], axis=0)[0]; $y[:, None].reshape(-1); $y[::-1].ravel()[::-1];
np.broadcast_to($y, (2, $n))[0]; np.hsplit($y, 1)[0]
"""
"""Expressions that are equal to `$y`: itself, a view of it, or a copy."""

ORDERS = {
    "stores": (
        *("{y}[{i}] = {f}", "{y}[{i}] += {f}", "{y}[:] += {f}", "{y}[:] = {y} + {f}", "{y} += {f}"),
        *("{y}[[0, -1]] = {f}", "{y}[{i}], {y}[0] = {f}, {y}[{i}]", "{y}[:1] = {y}[-1:] + {f}"),
        *(
            "{y}[::-1] = np.where({f} > 0, {y}, 2.0)",
            "{y}[{y} > {f}] = {f}",
            "np.add({y}, {f}, out={y})",
        ),
        *(
            "np.copyto({y}, {y}[::-1] + {f})",
            "np.copyto({y}, 1.0, where={y} > {f})",
            "{y}.fill({f})",
        ),
        *("{y}[int({f} > 0) - 1] = {y}[0]", "{y}[{i}] = {y}[{i}] + {f} - {y}[{i}]"),
        *("{y}[0], {y}[-1] = {y}[{i}] + {f}, {y}[{i}]", "{y}[:] = [{f}] * len({y})"),
    ),
    "arrays": (
        *("{y} + {f}", "{f} + {y}", "{y} * {f} - {y}", "[{y}, {y} + {f}][0] + {y}"),
        *(
            "np.stack([{y}, {y} + {f}])[0]",
            "np.where({y} > {f}, {y}, 0.0)",
            "np.where({f} < {y}, {y}, {y} * 2)",
        ),
        *(
            "np.add({y}, {f})",
            "np.maximum({f}, {y})",
            "np.where({f} > 0, {y}, {y} + 1)",
            "-{y} + {f}",
        ),
        *("{y}[:] + {f}", "{y}.copy() + {f}", "{y}[::-1] - {f} + {y}", "({y} - {f}) + ({y} + {f})"),
        *(
            "np.where(({y} < {f}) | ({y} == {f}), {y}, -{y})",
            "np.clip({y}, {f}, 9.0)",
            "{y} % 5 + {f}",
        ),
        *("np.concatenate([{y}, {y} + {f}])[:len({y})]", "(lambda p, r: p + r)({y}, {f})"),
        *(
            "np.full(len({y}), {f}) + {y}",
            "np.array([{f}, *({y} + {f})])[1:]",
            "{y} + (({f}) * {y})",
        ),
        *(
            "np.multiply({y}, {y} - {f})",
            '{{"u": {y}, "v": {f}}}["u"] * 1.0',
            "({y}, {f})[0] * 1.0",
        ),
        *("dict(u={y} * 1.0, v={f})['u']", "{y} - {f} * {y}[0]"),
    ),
    "numbers": (
        *(
            "{y}[{i}] + {f}",
            "({y}, {y}[{i}], {f})[1]",
            "[{y}[{i}], {f}, {y}[{i}]][2]",
            "{f} - {y}[0]",
        ),
        *("{y}.sum() + {f}", "{f} + {y}.sum()", "np.sum({y} + {f})", "np.dot({y}, {y} + {f}) % 7"),
        *("{y}[0] * {f} - {y}[-1]", "{f} + {f} * {y}[0]", "{y}[{i}] - {f} - {y}[{i}]"),
        *(
            "{y}[:1].sum() + {f}",
            "(lambda p, r: p.sum() + r)({y}, {f})",
            "{y}[{i}] + {f} + {y}[{i}]",
        ),
        *("({y} * {f}).sum() % 7", "{y}.max() + {f}", "[{f}, {y}[0]][1]", "{f} % 5 + {y}[-1] // 2"),
        *("(lambda p, *, r: p + r)(r={f}, p={y}[0])", "(1.0 if ({y} < {f}).any() else {y}[0])"),
        *(
            "({f} if {y}[0] > 0 and {f} > 0 else 1.0)",
            "max({y}[{i}], {f})",
            "min({f}, {y}[0], {f})",
        ),
        *("float({y}[0] < {f} < {y}[-1]) + {y}[0]", "({y}[0] if {f} > 0 or {f} > 1 else {y}[-1])"),
    ),
}
"""What reads an array `y` beside a call `f` that may change it: the order of both decides."""
