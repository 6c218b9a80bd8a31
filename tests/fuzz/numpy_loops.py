"""Loops that NumPy programmers write, as templates for random programs.

The holes are those of `numpy_templates`.
"""

LOOPS = """
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
$l = {"u": $y, "v": $y}
for $b, $i in $l.items():
    $i += 1.0
$l["u"] = $l["v"] + $l["u"]
$T = $l.pop("u")
$T[0] = $e
---
$b = np.ones($n, dtype=bool)
for $i in range($n):
    $b[$i::2] = $y[$i] > 0
$T = np.where($b, $y, $z)
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
def $f(v):
    t = np.zeros_like(v)
    for j in range(len(v)):
        t[j] = v[j] * $y[j]
    return t.sum()
$T = psc.grad($f)($y)
$y[0] = $e
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
$T = np.empty($n)
for $i in range($n):
    $T[$i] = $y[-1 - $i] + $e
$y[:] = $T
$T[0] = $e
---
$T = $y
while $T.sum() > 3:
    $T[...] = $T // 2
    $T[0] -= 1.0
    $T = $T[::-1]
---
$T = $y
for $i in range(3):
    $T = $T[::-1]
    $T[0] += 1.0
    BLOCK
---
$l = $y[:1]
for $i in range($n):
    $l[0] = $e
    $l = $y[$i:$i + 1]
$l += 1.0
---
for $i in range(3):
    def $f(v):
        $y[$i % $n] += v
        return $y
    $f($e)
$T = $f(1.0)
---
$l = list($a)
$l[0][0] = $e
$l[-1] += 1.0
for $i in list($a):
    $i[0] -= 1.0
---
$l = np.zeros($n, dtype=int)
for $i in range($n):
    $l[$i] = $i * 2
    $y[$i] += $l[$i]
---
$N = 0
for $i in range($n):
    $N += $y[$i] > 0
    $y[$i] = $N
---
for $i in range($n - 1, 0, -1):
    $y[$i] -= $y[$i - 1]
else:
    $y[0] = $e
---
for $i in range(2):
    for $j in range($n):
        if $y[$j] > $e:
            continue
        if $z[$j] < $y[$j]:
            break
        $z[$j] = $y[$j] + $i
    BLOCK
""".strip().split("\n---\n")
