"""Source texts that are meant to hurt a checker, by name, with a code that must be in the answer.

An empty code means that any answer will do, and `|` stands between several that will.
"""

from __future__ import annotations

from collections.abc import Iterator

HEAD = """\
import functools
import math
from typing import Literal

import numpy as np
import pscdsl as psc
from pscdsl import Num, f32, i32

"""
KERNEL = '@psc.kernel\ndef kernel(x: f32["n"]) -> f32["n"]:\n'
Case = tuple[str, str | bytes, str]


def body(text: str) -> str:
    """A kernel with this body."""
    return HEAD + KERNEL + "".join(f"    {line}\n" for line in text.split("\n"))


def signature(parameters: str, result: str = "x") -> str:
    """A kernel with these parameters."""
    return HEAD + f"@psc.kernel\ndef kernel({parameters}):\n    return {result}\n"


def cases() -> Iterator[Case]:
    """All of them."""
    for family in (
        encodings,
        layouts,
        nesting,
        folding,
        doubling,
        signatures,
        modules,
        sizes,
        long,
        kinds,
        newer,
    ):
        for name, text, code in family():
            yield f"{family.__name__}: {name}", text, code


def encodings() -> Iterator[Case]:
    """Bytes that are no text, or another one than they seem."""
    plain = (body("return x + y")).encode()
    yield "a zero byte", HEAD + "\0" + KERNEL, "PSC1"
    yield "every byte", bytes(range(256)) * 1000, "PSC1"
    yield "invalid UTF-8", HEAD.encode() + b'x = "\xff\xfe"\n', "PSC1"
    yield "a surrogate", HEAD.encode() + b'x = "\xed\xa0\x80"\n', "PSC1"
    yield "a byte order mark", b"\xef\xbb\xbf" + plain, "PSC102"
    yield "UTF-16", b"\xff\xfe" + plain.decode().encode("utf-16-le"), "PSC1"
    yield "a mark and another encoding", b"\xef\xbb\xbf# coding: latin-1\n" + plain, "PSC1"
    yield "latin-1", b"# coding: latin-1\n" + plain + b"# \xe9\n", "PSC102"
    for name in ("rot13", "hex", "zlib", "undefined", "nonsense", "idna", "punycode", "utf-7"):
        yield f"encoding {name}", f"# coding: {name}\n".encode() + plain, ""
    yield "unicode escapes", b"# coding: raw_unicode_escape\nx = '\\U99999999'\n", "PSC1"
    yield "carriage returns", plain.replace(b"\n", b"\r"), ""
    yield "carriage returns and line feeds", plain.replace(b"\n", b"\r\n"), "PSC102"
    yield "form feeds", plain.replace(b"return", b"\f  \f    return"), ""
    separators = "\x0b\x1c\x1d\x85\u2028"
    yield "separators in a string", body(f'return x + "{separators}" + y'), "PSC102"
    yield (
        "separators in a comment",
        HEAD + f"# {separators}\n" + KERNEL + "    return y\n",
        "PSC102",
    )
    yield "escapes in a string", body('return x + "\x1b[31mred\x1b[0m\x07\x08" + y'), "PSC102"
    yield "escapes in a comment", body("return x + y  # \x1b]0;title\x07 \x9b31m"), "PSC102"
    yield "right to left", body("return x + y  # \u202e\u2066 txet"), "PSC102"
    yield "escapes in a shape", signature('x: f32["n\\x1b[31m"]'), "PSC104"
    yield "escapes in a key", body('return x * {}["\\x1b[32m\\n"]'), "PSC112"
    literal = 'psc.Static[Literal["\\x1b[31m\\r\\n"]]'
    yield "escapes in a static value", signature(f"x: f32, s: {literal}", "x + nothing"), "PSC102"
    yield "homoglyphs", body("a\u0430 = x\nreturn \u0430a"), "PSC102"
    yield "compatibility characters", body("\ufb01 = x\nreturn fi"), ""


def layouts() -> Iterator[Case]:
    """Files of an unusual form."""
    yield "nothing", "", ""
    yield "a line of 10 MB", 'x = "' + "a" * 10_000_000 + '"\n', "PSC933"
    yield "a line of 3 MB", HEAD + 'x = "' + "a" * 3_000_000 + '"\n' + body("return y"), "PSC102"
    yield "a comment of 3 MB", "#" * 3_000_000, ""
    yield "a million lines", "\n" * 1_000_000 + body("return y"), "PSC102"
    yield "a million continuations", "\\\n" * 1_000_000, ""
    yield "a name of 1 MB", body("return " + "a" * 1_000_000), "PSC102"
    yield "a huge suppression", body("return y  # psc: ignore[" + "A" * 1_000_000 + "]"), "PSC102"
    yield "an integer of a million digits", body("return x * 0x" + "f" * 1_000_000), "PSC116"
    yield "an integer of 5000 digits", body("return x * " + "9" * 5000), "PSC1"
    yield "100,000 decorators", "@a\n" * 100_000 + "def f(): pass\n", ""
    yield "50,000 targets", HEAD + "a = " * 50_000 + "1\n" + KERNEL + "    return x * a\n", ""
    yield "5000 mistakes", body("\n".join(f"a{i} = y{i}" for i in range(5000))), "PSC102"
    yield "tabs and blanks", HEAD + KERNEL + "\tif 1:\n        return x\n", "PSC1"


def nesting() -> Iterator[Case]:
    """Expressions and statements within each other."""
    many = 100_000
    for name, text in {
        "parentheses": "(" * many + "x" + ")" * many,
        "lists": "[" * many + "x" + "]" * many,
        "minus signs": "-" * many + "x",
        "not": "not " * many + "x",
        "attributes": "x" + ".T" * many,
        "calls": "x" + "()" * many,
        "indices": "x" + "[0]" * many,
        "lambdas": "lambda: " * many + "x",
        "conditional expressions": "x if 1 else " * many + "x",
        "powers": "x**" * many + "x",
        "awaits": "await " * many + "x",
        "stars": "*" * many + "x",
        "conjunctions": "x and " * many + "x",
        "comparisons": "x < " * many + "x",
        "a sum": "+".join(["x"] * many),
        "a sum of numbers": "x + " + "+".join(["1"] * many),
    }.items():
        yield f"100,000 {name}", body("return " + text), ""
    few = 150
    for name, text in {
        "parentheses": "(" * few + "x" + ")" * few,
        "lists": "[" * few + "x" + "]" * few,
        "dicts": "{1: " * few + "x" + "}" * few,
        "calls": "np.sin(" * few + "x" + ")" * few,
        "walruses": "(a := " * few + "x" + ")" * few,
        "f-strings": "x * len(" + "f'{" * few + "1" + "}'" * few + ")",
    }.items():
        yield f"150 {name}", body("return " + text), ""
    # Python itself may read it or not, as its version and the depth of the stack have it.
    yield "5000 methods", body("return x" + ".copy()" * 5000), "PSC950|PSC100"
    yield "5000 terms", body("return " + " + ".join(["x"] * 5000)), ""
    branches = "".join(f"elif x.ndim == {i + 5}:\n    return x\n" for i in range(2000))
    yield "2000 branches", body("if 0:\n    return x\n" + branches + "return x"), ""
    ifs = "".join(" " * i + "if 1:\n" for i in range(95))
    yield "95 ifs", body(ifs + " " * 96 + "return x + y"), "PSC102"
    ifs = "".join(" " * i + "if 1:\n" for i in range(120))
    yield "120 ifs", body(ifs + " " * 121 + "return x"), ""
    functions = "".join(" " * i + f"def g{i}():\n" for i in range(90))
    yield "90 functions", body(functions + " " * 91 + "return x\nreturn x"), ""
    loops = "".join(" " * i + f"for a{i} in range(2):\n" for i in range(18))
    yield "18 loops", body(loops + " " * 19 + "x = x + 1\nreturn x"), "PSC1"
    patterns = "match 1:\n    case " + "[" * few + "a" + "]" * few + ":\n        pass\n"
    yield "patterns", HEAD + patterns, ""
    loop = "def g0(y):\n    return y + 1\n" + "".join(
        f"def g{i}(y):\n    return psc.fori_loop(0, 2, lambda i, c: g{i - 1}(g{i - 1}(c)), y)\n"
        for i in range(1, 30)
    )
    yield "loops in loops", body(loop + "return g29(x)"), "PSC1"
    either = "def g0(y):\n    return y + 1\n" + "".join(
        f"def g{i}(y):\n    return psc.cond(y[0] > 0, g{i - 1}, g{i - 1}, y)\n"
        for i in range(1, 30)
    )
    yield "branches in branches", body(either + "return g29(x)"), "PSC1"


def folding() -> Iterator[Case]:
    """Constants that are too large to compute, in a kernel and at module level."""
    refused = """\
x * 10**10**10
x * len("a" * 10**10)
x * len(list(range(10**9)))
x * (1 << 10**9)
x * len([[0] * 10**5] * 10**5)
x * len(f"{1:10000000000}")
x * len("%1000000000d" % 1)
x * len("{:1000000000}".format(1))
x * len(("a" * 99_999).replace("a", "b" * 99_999))
x * len("a".join(["b" * 99_999] * 99_999))
x * sum(range(10**9))
x * max(range(10**9))
x * len([(a, b, c) for a in range(1000) for b in range(1000) for c in range(1000)])
x * len({(a, b): 1 for a in range(5000) for b in range(5000)})
x * math.factorial(10**9)
x * math.comb(10**9, 10**8)
x * ((10**1000) ** 2)
x * len(str((10**1200) ** 4))
x * int("9" * 5000)
x * len(list(map(lambda i: i, range(10**9))))
x * len(list(zip(range(10**9), range(10**9))))
x * functools.reduce(lambda a, b: a + a, range(100), [1])[0]
"""
    for line in refused.splitlines():
        yield line, body(f"return {line}"), "PSC1"
        value = line.removeprefix("x * ")
        yield f"a module's {value}", HEAD + f"A = {value}\n" + KERNEL + "    return x * A\n", "PSC"
    answered = """\
x * np.linspace(0, 1, 10**10)[0]
x * np.repeat(np.zeros(1000), 10**9)[0]
x * np.tile(np.arange(10), 10**9)[0]
x * np.pad(np.zeros(3), 10**10)[0]
x * np.broadcast_to(1.0, (10**10, 10**10))[0, 0]
x * np.tri(10**6)[0, 0]
x * np.convolve(np.zeros(99_999), np.zeros(99_999))[0]
x * np.kron(np.zeros(99_999), np.zeros(99_999))[0]
x * (10**20 in range(10**30))
x * 10**1000
x + 10**40
x[10**40]
x[:10**40]
np.roll(x, 10**40)
x.reshape(10**40)
x.reshape((1,) * 1000)
x ** 10**9
psc.update(x, 10**40, 1)
psc.scan(lambda c, _: (c, c), x, length=10**40)[0]
psc.fori_loop(0, 10**40, lambda i, c: c, x)
x * (x.shape[0] + 1) ** 16 ** 16
x * round(1.5, 10**10)
x * float(10**1000)
x * np.int32(10**30)
(lambda f: f(f))(lambda f: f(f))
(lambda f: f(f) + f(f))(lambda f: f(f) + f(f))
x * np.zeros(10**12)
x * np.eye(10**6).sum()
x * np.arange(10**10).sum()
x * np.full((10**6, 10**6), 1).sum()
np.einsum("abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz", x)
x * np.array("9" * 9999)
"""
    for line in answered.splitlines():
        yield line, body(f"return {line}"), ""
        text = HEAD + f"x = np.zeros(3)\nA = {line}\n" + KERNEL + "    return x * A\n"
        yield f"a module's {line}", text, ""


def doubling() -> Iterator[Case]:
    """Values that grow twofold, 64 times."""
    for name, (first, step) in {
        "lists": ("[1]", "a + a"),
        "tuples": ("(1,)", "a + a"),
        "texts": ('"a"', "a + a"),
        "pairs": ("1", "(a, a)"),
        "pairs of arrays": ("x", "(a, a)"),
        "dicts": ("1", '{"a": a, "b": a}'),
        "integers": ("3", "a * a"),
        "unpacked lists": ("[1]", "[*a, *a]"),
        "f-strings": ('"a"', 'f"{a}{a}"'),
        "comprehensions": ("[1]", "[b for b in a for c in (1, 2)]"),
        "zipped lists": ("[1, 2]", "list(zip(a, a))"),
    }.items():
        loop = f"a = {first}\nfor i in range(64):\n    a = {step}\nreturn x"
        # A loop of so many steps is not unrolled, and its integers have 64 bits.
        yield name, body(loop), "" if name == "integers" else "PSC1"
        steps = f"a = {first}\n" + f"a = {step}\n" * 64 + "return x"
        yield f"{name}, written out", body(steps), "PSC1"
        if "x" not in first:
            names = f"A0 = {first}\n" + "".join(
                f"A{i + 1} = {step.replace('a', f'A{i}') if 'for' not in step else step}\n"
                for i in range(64)
            )
            yield f"a module's {name}", HEAD + names + KERNEL + "    return x * A64[0]\n", "PSC"
    for name, (first, step) in {
        "representations": ('"a"', "str([a, a])"),
        "sizes": ("x.shape[0]", "a * a + 1"),
        "sums of sizes": ("x.shape[0]", "a + a"),
        "arrays": ("x", "np.concatenate([a, a])"),
        "stacks": ("x", "np.stack([a, a])"),
        "outer products": ("x", "np.outer(a, a).ravel()"),
        "functions": ("(lambda y: y)", "(lambda b: lambda y: b(b(y)))(a)"),
        "floats": ("3.0", "a * a"),
        "halves": ("x.shape[0]", "a // 2 + a // 3 + 1"),
        "extrema": ("x.shape[0]", "max(a, 5) + min(a, 7)"),
    }.items():
        last = "a(x)" if name == "functions" else "x"
        loop = f"a = {first}\nfor i in range(64):\n    a = {step}\nreturn {last}"
        yield name, body(loop), ""


def signatures() -> Iterator[Case]:
    """Parameters and their types."""
    yield "a huge size", signature('x: f32["9999999999999999999999"]', "x.sum() + x[5]"), ""
    yield "5000 digits", signature('x: f32["' + "9" * 5000 + '"]', "x.sum()"), ""
    yield "a negative size", signature('x: f32["-5 0 n-7"], y: f32["n"]', "x.sum()"), ""
    yield "5000 parentheses", signature('x: f32["' + "(" * 5000 + "n" + ")" * 5000 + '"]'), "PSC104"
    yield "5000 sums", signature('x: f32["' + "+".join("n" * 5000) + '"], y: f32["n"]'), ""
    yield "5000 products", signature('x: f32["' + "*".join("n" * 5000) + '"], y: f32["n"]'), ""
    yield "5000 quotients", signature('x: f32["' + "//".join("n" * 5000) + '"], y: f32["n"]'), ""
    power = "*".join(["(n+m+k+1)"] * 50)
    yield "a power of a sum", signature(f'x: f32["n m k"], y: f32["{power}"]'), ""
    yield "5000 axes", signature('x: f32["' + "n " * 5000 + '"]'), ""
    yield "quoted minus signs", signature('x: "' + "-" * 100_000 + 'f32"'), "PSC104"
    yield "quoted parentheses", signature('x: "' + "(" * 5000 + "f32" + ")" * 5000 + '"'), "PSC104"
    yield "90 tuples", signature("x: " + "tuple[" * 90 + "f32" + "]" * 90), ""
    yield "10,000 parameters", signature(", ".join(f'x{i}: f32["n{i}"]' for i in range(10_000))), ""
    flags = ", ".join(f"s{i}: psc.Static[bool]" for i in range(1000))
    yield "1000 flags", signature(f"x: f32, {flags}"), "PSC905"
    literal = f"psc.Static[Literal[{', '.join(map(str, range(5000)))}]]"
    yield "5000 values twice", signature(f"x: f32, s: {literal}, t: {literal}"), ""
    ranks = ", ".join(f'x{i}: Num["*b{i}"]' for i in range(20))
    yield "20 ranks and dtypes", signature(ranks, "x0.sum()"), ""
    tuples = ", ".join(f"x{i}: tuple[tuple[f32, ...], ...]" for i in range(20))
    yield "20 lengths of lengths", signature(tuples, "1.0"), ""


def modules() -> Iterator[Case]:
    """Definitions that go round in circles, or on and on."""
    yield (
        "constants in a circle",
        HEAD + "A = B + 1\nB = A + 1\n" + KERNEL + "    return x * A\n",
        "PSC",
    )
    chain = "A0 = 3\n" + "".join(f"A{i + 1} = A{i} + 1\n" for i in range(20_000))
    yield "20,000 constants", HEAD + chain + KERNEL + "    return x * A20000\n", ""
    records = 'class A(psc.Record):\n    b: "B"\n\n\nclass B(psc.Record):\n    a: A\n\n\n'
    yield "records in each other", HEAD + records + signature("x: A", "x.b.a"), "PSC104"
    bases = "class A(B):\n    b: f32\n\n\nclass B(A):\n    a: f32\n\n\n"
    yield "bases in a circle", HEAD + bases + signature("x: A", "x.b"), "PSC"
    yield "a class on itself", HEAD + "class A(A):\n    b: f32\n\n\n" + signature("x: A"), "PSC"
    grown = 'class A0(psc.Record):\n    a: f32["n"]\n' + "".join(
        f"class A{i}(psc.Record):\n    a: A{i - 1}\n    b: A{i - 1}\n" for i in range(1, 40)
    )
    yield "records that double", HEAD + grown + signature("x: A39", "x.a.a"), "PSC"
    tuples = "T0 = f32\n" + "".join(f"T{i} = tuple[T{i - 1}, T{i - 1}]\n" for i in range(1, 40))
    yield "tuples that double", HEAD + tuples + signature("x: T39", "x[0][0]"), "PSC"
    line = "class A0(psc.Record):\n    a0: f32\n" + "".join(
        f"class A{i}(A{i - 1}):\n    a{i}: f32\n" for i in range(1, 2000)
    )
    yield "2000 generations", HEAD + line + signature("x: A1999", "x.a0"), ""
    circle = "@g\ndef h(x):\n    return x\n\n\n@h\ndef g(x):\n    return x\n\n\n"
    yield "decorators in a circle", HEAD + circle + "@g\n" + body("return h(x)"), "PSC"
    yield "a function that decorates itself", HEAD + "@kernel\n" + KERNEL + "    return x\n", "PSC"
    helpers = "def g0(x):\n    return x\n" + "".join(
        f"def g{i}(x):\n    return g{i - 1}(x) + g{i - 1}(x)\n" for i in range(1, 64)
    )
    yield "helpers that call twice", helpers + body("return g63(x)"), "PSC1"
    kernels = (
        KERNEL.replace("kernel(", "k0(")
        + "    return x\n"
        + "".join(
            KERNEL.replace("kernel(", f"k{i}(") + f"    return k{i - 1}(x) + k{i - 1}(x)\n"
            for i in range(1, 500)
        )
    )
    yield "500 kernels that call twice", HEAD + kernels, ""
    different = kernels.replace("k0(x)", "k0(x + 1)")
    for i in range(1, 500):
        different = different.replace(f"+ k{i}(x)\n", f"+ k{i}(np.sin(x))\n")
    yield "500 kernels that call twice with different arrays", HEAD + different, "PSC952"
    many = "".join(
        KERNEL.replace("kernel(", f"k{i}(") + f"    return x + {i}\n" for i in range(3000)
    )
    yield "3000 kernels", HEAD + many, ""


def sizes() -> Iterator[Case]:
    """Facts that are hard to prove."""
    head = HEAD + "@psc.kernel\ndef kernel("

    def arrays(count: int) -> str:
        return ", ".join(f'x{i}: f32["n{i}"]' for i in range(count)) + ") -> f32:\n"

    chain = "".join(f"    assert x{i}.shape[0] <= x{i + 1}.shape[0]\n" for i in range(59))
    yield (
        "60 sizes in order",
        head + arrays(60) + chain + "    return (x59[: x0.shape[0]] + x0).sum()\n",
        "",
    )
    tangle = "".join(
        f"    assert x{i}.shape[0] * x{i * 7 % 30}.shape[0] <= "
        f"x{i * 11 % 30}.shape[0] + x{i * 13 % 30}.shape[0] * {i + 2}\n"
        for i in range(30)
    )
    last = "    return (x29[: x0.shape[0]] + x0).sum() + x3[: x5.shape[0]].sum()\n"
    yield "products of sizes", head + arrays(30) + tangle + last, "PSC3"
    quotients = "".join(
        f"    assert x{i}.shape[0] % {i + 2} == {i % 2} and "
        f"x{i}.shape[0] // {i + 3} + x{i * 7 % 12}.shape[0] // 2 <= x{i * 5 % 12}.shape[0]\n"
        for i in range(12)
    )
    last = "    return (x9[: x0.shape[0]] + x0).sum() + x3[: x5.shape[0]].sum()\n"
    yield "quotients of sizes", head + arrays(12) + quotients * 5 + last, "PSC3"
    cube = '@psc.kernel\ndef kernel(x: f32["n m k"]) -> f32:\n    n, m, k = x.shape\n'
    power = (
        cube + "    s = (n + m + k + 1) ** 16\n    return np.zeros(s * s).reshape(s, -1).sum()\n"
    )
    yield "a reshape by a power", HEAD + power, ""
    loop = "    s = 1\n    for i in range(50):\n        s = s * (n + m + k + 1)\n"
    last = "    return np.zeros(s).reshape(-1, n + m + k + 1).sum()\n"
    yield "the 50th power of a sum", HEAD + cube + loop + last, ""


def long() -> Iterator[Case]:
    """Texts that are read for imports, names or members, and are very long."""
    yield "dots in a text", f'"""\nfrom {"." * 200_000}\n"""\n' + body("return x + y"), "PSC102"
    yield "spaces after from", f"from{' ' * 200_000}a import b\n" + body("return x + y"), "PSC102"
    parts = ".".join("a" * 64_000)
    for text in ("import {}", "lazy import b, {}", "if x: from .{} import b", "import \\\n{}"):
        program = f"{text.format(parts)}\n" + body("return x")
        yield f"a module of many parts, {text[:9]!r}", program, "PSC1"
    yield "brackets that stay open", "from a import (\n" * 64_000 + body("return x"), "PSC1"
    yield "a chain of attributes", body(f"return x{'.T' * 3_000}"), ""
    yield "rounding to many digits", body("return x * round(10**400, -(10**9))"), "PSC116"
    yield "rounding behind the point", body("return x * round(1.5, 10**9)"), "PSC116"
    yield (
        "slices of slices",
        body("t = slice(1, 2)\n" + "t = slice(t, t)\n" * 22 + "return x * t"),
        "",
    )
    yield "tuples of tuples", body("t = (1, 2)\n" + "t = (t, t)\n" * 16 + "return x @ t"), ""
    fields = "".join(f"    a{i}: f32\n" for i in range(3_000))
    record = f"class R(psc.Record):\n{fields}\n"
    kernel = "@psc.kernel\ndef kernel(x: f32, r: R) -> f32:\n    return x * r.a0 + y\n"
    yield "a record of many fields", HEAD + record + kernel, "PSC102"
    members = "".join(f"    A{i} = {i}\n" for i in range(30_000))
    head = f"import enum\n{HEAD}class E(enum.Enum):\n{members}\n"
    text = f"{head}{KERNEL}    return x * E.A5.value + y\n"
    yield "an enumeration of many members", text, "PSC102"


def kinds() -> Iterator[Case]:
    """What is of another kind than what is expected at its place."""
    yield "an array type that is called", signature('x: f32["n"]("m")'), "PSC111"
    yield "an array as a type", signature("x: np.zeros(3)"), "PSC104"
    yield "a number's dtype as a type", signature("x: f32((1, 32))"), "PSC"
    bound = "from typing import TypeVar\nT = TypeVar('T', bound=np.zeros(3))\n"
    yield "an array as a bound", HEAD + bound + signature("x: T"), "PSC104"
    for name, result in {
        "no name": "undefined",
        "an attribute of a function": "function.undefined",
        "a call of no name": "undefined(function)",
    }.items():
        loud = f"def loud(function):\n    return {result}\n\n\n"
        helper = "@loud\ndef helper(x):\n    return x\n\n\n"
        yield f"a decorator that returns {name}", loud + helper + body("return helper(x)"), "PSC"
    for given in ("[10**400]", "[10**400, 1.5]", "[[1], [10**39]]", "[10**400, 1j]"):
        yield f"an array of {given}", body(f"return x * np.array({given})"), "PSC402"
    for text in ("np.zeros(10**30)", "np.repeat(x, 10**30)", "np.full(10**30, x[0])"):
        yield f"the size of {text}", body(f"return x + {text}.sum()"), "PSC116"
    for size in ("10**30", f'"{"n " * 100}"', '"n*" * 3000 + "n"', "-(10**30)"):
        yield f"f32[{size[:10]}]", signature(f"x: f32[{size}]", "x.sum()"), ""
    yield "a list as a key", body("d = {[1]: 1}\nreturn x"), "PSC"
    yield "a set in a set", body("d = {{1}}\nreturn x"), "PSC"


def newer() -> Iterator[Case]:
    """What Python 3.14 and 3.15 read, and older versions do not."""
    nested = "x"
    for _ in range(60):
        nested = f"[*({nested},) for q in (1,)]"
    yield "unpacking that is nested", body(f"return {nested}{'[0]' * 60} + y"), "PSC1"
    for kinds in ("[]", "{}"):
        plain = "x"
        for _ in range(30):
            plain = f"{kinds[0]}{plain} for q in (1,) if q{kinds[1]}"
        yield f"comprehensions {kinds} that are nested", body(f"return {plain}"), "PSC"
    doubled = "(x,)"
    for _ in range(40):
        doubled = f"[*q for q in ({doubled}, {doubled[:200]})]" if len(doubled) < 9000 else doubled
    yield "unpacking that doubles", body(f"return {doubled}"), ""
    yield "unpacking of much", body("return len([*range(10**6) for q in range(10**6)])"), "PSC1"
    yield "unpacking of many dicts", body("return len({**{q: q} for q in range(10**6)})"), "PSC1"
    text = "x"
    for quote in ("'", '"', "'''", '"""'):
        text = f"t{quote}{{{text}!r:>{{x}}}}{quote}"
    yield "template strings in each other", body(f"return {text}"), "PSC1"
    many = ", ".join(f"E{n}" for n in range(5_000))
    caught = body(f"try:\n    return x\nexcept {many}:\n    return y")
    yield "many exceptions without brackets", caught, "PSC1"
    lazy = "".join(f"lazy import m{n}.a.b\n" for n in range(20_000))
    yield "many lazy imports", lazy + body("return x + y"), "PSC1"
    lazy = "lazy from hostile import y\n" + body("return x + y")
    yield "a lazy import of itself", lazy, "PSC1|PSC911"
    yield "a lazy import in a kernel", body("lazy import math\nreturn x"), "PSC1"
    yield (
        "nested type parameters",
        body("def f[T: (int, str) = list[int]](q): return T\nreturn y"),
        "",
    )
