"""Functions with derivatives of their own, and solutions of equations.

Their rules are right, and what `solve` computes is the solution, so that the laws of derivatives
hold of them.
"""

from __future__ import annotations

from tests.fuzz.bodies import Body, Statement, indented
from tests.fuzz.model import Array
from tests.fuzz.operations import broadcast, made, need
from tests.fuzz.plain_python import same

FORMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("np.sin({a})", ("np.cos({a})",)),
    ("np.tanh({a})", ("1 - np.tanh({a}) ** 2",)),
    ("({a} * {a})", ("2 * {a}",)),
    ("({a} * {b})", ("{b}", "{a}")),
    ("({a} + {b} * {b})", ("1", "2 * {b}")),
    ("({a} * np.cos({b}))", ("np.cos({b})", "-{a} * np.sin({b})")),
)
"""Functions of one or two numbers, and their partial derivatives."""


def floats(g: Body) -> list[Array]:
    """Arrays of floating-point numbers of one type, some of them the same one."""
    found = [v for v in g.arrays() if v.is_float]
    need(bool(found))
    x = g.choice(found)
    return [x, *same(g, x, 1)]


def place(g: Body, lines: list[str]) -> None:
    """Put a definition before the statement, or before the functions of the module."""
    if g.chance(0.5):
        g.lines += lines
    else:
        g.generator.parts.append("\n".join(lines))


def ruled(g: Body) -> None:
    """A function with `psc.custom_jvp` or `psc.custom_vjp`, and its call."""
    need(g.depth < 2)
    args = floats(g)
    form, slopes = g.choice(FORMS)
    name, a, b = g.name(), g.name(), g.name()
    params = [a, b][: len(slopes)]
    args = args[: len(slopes)]
    body = form.format(a=a, b=b)
    partials = [f"({each.format(a=a, b=b)})" for each in slopes]
    whole = ", ".join(params)
    rule, back = g.name(), g.name()
    docstring = ['    """A function with a rule."""'] if g.chance(0.2) else []
    head = [f"def {name}({whole}):", *docstring, f"    return {body}", ""]
    comma = "," if len(params) == 1 else ""
    if g.chance(0.6):
        tangents = [f"d{each}" for each in params]
        terms = " + ".join(f"{p} * {t}" for p, t in zip(partials, tangents, strict=True))
        lines = ["@psc.custom_jvp", *head, f"@{name}.defjvp", f"def {rule}(primals, tangents):"]
        lines += indented(
            [
                f"({whole}{comma}), ({', '.join(tangents)}{comma}) = primals, tangents",
                f"return {name}({whole}), {terms}",
            ]
        )
    else:
        terms = ", ".join(f"{p} * ct" for p in partials)
        lines = ["@psc.custom_vjp", *head, f"def {rule}({whole}):"]
        lines += [f"    return {name}({whole}), ({whole}{comma})", "", f"def {back}(saved, ct):"]
        lines += indented([f"{whole}{comma} = saved", f"return ({terms}{comma})"])
        lines += ["", f"{name}.defvjp({rule}, {back})"]
    most = max(x.most for x in args)
    found = made("", args[0].dtype, args[0].shape, -most - most**2 - 1, most + most**2 + 1)
    place(g, lines)
    texts = ", ".join(x.text for x in args)
    g.bind(found.named(f"{name}({texts})"))


def powered(g: Body) -> None:
    """A rule that knows a static argument."""
    need(g.depth < 2)
    x = floats(g)[0]
    name, rule, count = g.name(), g.name(), g.randrange(1, 4)
    lines = [
        "@functools.partial(psc.custom_jvp, nondiff_argnums=(1,))",
        f"def {name}(x, count):",
        "    for _ in range(count):",
        "        x = x * 2",
        "    return x",
        "",
        f"@{name}.defjvp",
        f"def {rule}(count, primals, tangents):",
        f"    return {name}(primals[0], count), tangents[0] * 2**count",
    ]
    found = made("", x.dtype, x.shape, -8 * x.most, 8 * x.most, x.grid)
    place(g, lines)
    g.bind(found.named(f"{name}({x.text}, {count})"))


def divisor(g: Body, x: Array) -> str:
    """A number of at least 1 for each element of x, or the same for some of them."""
    fitting = [y for y in g.arrays() if y.dtype == x.dtype and _fits(x, y)]
    y = g.choice(fitting)
    return g.choice((f"(np.abs({y.text}) + 1)", f"({y.text} ** 2 + 1)")) if y.most < 100 else "2"


def _fits(x: Array, y: Array) -> bool:
    from tests.fuzz.model import Inapplicable

    try:
        return broadcast(x, y) == x.shape
    except Inapplicable:
        return False


def linear(g: Body) -> None:
    """`psc.custom_linear_solve` of a diagonal system."""
    need(g.depth < 2)
    b = floats(g)[0]
    d = divisor(g, b)
    z, f, r = g.name(), g.name(), g.name()
    matvec = f"lambda {z}: {z} * {d}"
    solve = g.choice(
        (f"lambda {f}, {r}: {r} / {d}", f"lambda {f}, {r}: {r} / {f}(np.ones_like({r}))")
    )
    option = g.choice(("symmetric=True", f"transpose_solve={solve}"))
    found = made("", b.dtype, b.shape, -b.most, b.most)
    match g.randrange(3):
        case 0:
            g.bind(found.named(f"psc.custom_linear_solve({matvec}, {b.text}, {solve}, {option})"))
        case 1:
            solve = f"lambda {f}, {r}: ({r} / {d}, np.int32(1))"
            names = g.name(), g.name()
            text = f"psc.custom_linear_solve({matvec}, {b.text}, {solve}, {option}, has_aux=True)"
            g.lines.append(f"{names[0]}, {names[1]} = {text}")
            g.values += [found.named(names[0]), Array(names[1], "i32", (), 1, 1, 1.0)]
        case _:
            names = g.name(), g.name()
            matvec = f"lambda {z}: ({z}[0] * {d}, {z}[1] * 2)"
            solve = f"lambda {f}, {r}: ({r}[0] / {d}, {r}[1] * 0.5)"
            if "transpose" in option:
                option = f"transpose_solve={solve}"
            text = f"psc.custom_linear_solve({matvec}, ({b.text}, {b.text}), {solve}, {option})"
            g.lines.append(f"{names[0]}, {names[1]} = {text}")
            g.values += [found.named(each) for each in names]


def root(g: Body) -> None:
    """`psc.custom_root` of a linear or a cubic equation."""
    need(g.depth < 2)
    b = floats(g)[0]
    z, f, y = g.name(), g.name(), g.name()
    tangent = f"lambda {f}, {y}: {y} / {f}(np.ones_like({y}))"
    if b.dtype in ("f32", "f64") and b.most <= 16 and g.chance(0.4):
        w = g.name()
        function = f"lambda {z}: {z} * {z} * {z} + {z} - {b.text}"
        step = f"lambda _, {w}: {w} - {f}({w}) / (3 * {w} * {w} + 1)"
        solve = f"lambda {f}, {z}: psc.fori_loop(0, 25, {step}, {z})"
    else:
        d = divisor(g, b)
        function = f"lambda {z}: {z} * {d} - {b.text}"
        solve = f"lambda {f}, {z}: {z} - {f}({z}) / {d}"
    text = f"psc.custom_root({function}, np.zeros_like({b.text}), {solve}, {tangent})"
    g.bind(made(text, b.dtype, b.shape, -b.most, b.most))


STATEMENTS: tuple[tuple[int, Statement], ...] = ((2, ruled), (1, powered), (1, linear), (1, root))
