"""Functions of Python: all kinds of parameters, closures, early returns, functions of functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.fuzz.bodies import Body, Statement, indented
from tests.fuzz.model import UNSIGNED, Array, Size
from tests.fuzz.model import at as renamed
from tests.fuzz.model import leaves as arrays_of
from tests.fuzz.operations import made, need, partner, unary
from tests.fuzz.plain_python import blocks, condition, hide, same
from tests.fuzz.statements import following, stepped, union


def defined(g: Body, params: str, lines: list[str], result: str) -> str:
    """Define a nested function; its name."""
    name = g.name()
    g.lines.append(f"def {name}({params}):")
    g.lines += indented([*lines, f"return {result}"])
    return name


def variadic(g: Body) -> None:
    """`*args` and `**kwargs`, and calls that spread a tuple or a dict."""
    need(g.depth < 2)
    first, extra = g.choice(g.arrays()), g.choice(g.arrays())
    others = [g.choice(g.arrays()) for _ in range(g.randrange(3))]
    inner = g.nested()
    p, rest, more = g.name(), g.name(), g.name()
    inner.values.append(first.named(p))
    inner.values += [each.named(f"{rest}[{at}]") for at, each in enumerate(others)]
    inner.values += [extra.named(f'{more}["a"]')] * 2
    if g.chance(0.3):
        inner.lines.append(f"assert len({rest}) == {len(others)} and [*{more}] == ['a']")
    inner.steps(g.randrange(2))
    result = inner.expression()
    name = defined(g, f"{p}, *{rest}, **{more}", inner.lines, result.text)
    texts = [first.text, *(each.text for each in others)]
    plain, spread = ", ".join(texts), "".join(f"{each}, " for each in texts[1:])
    call = g.choice(
        (
            f"{plain}, a={extra.text}",
            f"*({plain},), a={extra.text}",
            f'{plain}, **{{"a": {extra.text}}}',
            f"*[{first.text}], *({spread}), **dict(a={extra.text})",
        )
    )
    g.bind(result.named(f"{name}({call})"))


def keyworded(g: Body) -> None:
    """Defaults and parameters that are given by keyword alone."""
    need(g.depth < 2)
    a, default, c = (g.choice(g.arrays()) for _ in range(3))
    if (default.dtype, default.shape) == ("f32", (Size.of(3),)):
        default = unary(g, default)  # not TABLE, which each call might write as its default
    p, q, r, s = (g.name() for _ in range(4))
    given = g.like(default.dtype, default.shape)
    optional = g.like(a.dtype, a.shape)
    inner = g.nested()
    inner.values += [a.named(p), union([default, given]).named(q), c.named(r)]
    inner.lines.append(f"if {s} is None:")
    instead = inner.like(a.dtype, a.shape)
    inner.lines.append(f"    {s} = {instead.text}")
    inner.values.append(union([instead, optional]).named(s))
    inner.steps(g.randrange(2))
    result = inner.expression()
    params = f"{p}, {q}={default.text}, *, {r}, {s}=None"
    if g.chance(0.3):
        params = f"{p}, /, {q}={default.text}, *, {r}, {s}=None"
    name = defined(g, params, inner.lines, result.text)
    parts = [f"{r}={c.text}"]
    if g.chance(0.5):
        parts.append(f"{q}={given.text}")
    if g.chance(0.5):
        parts.append(
            g.choice((f"{s}={optional.text}", f'**{{"{s}": {optional.text}}}', f"{s}=None"))
        )
    order = g.sample(parts, len(parts))
    order = [x for x in order if "*" not in x[:2]] + [x for x in order if "*" in x[:2]]
    g.bind(result.named(f"{name}({a.text}, {', '.join(order)})"))


def early(g: Body) -> None:
    """A function that returns from a static branch or loop."""
    need(g.depth < 2)
    x = g.choice(g.arrays())
    args = [g.choice(g.arrays()) for _ in range(g.randrange(1, 3))]
    params = [g.name() for _ in args]
    inner = g.nested()
    inner.values += [each.named(name) for each, name in zip(args, params, strict=True)]
    parts = blocks(inner, x, 3)
    (one, first), (two, second), (three, third) = parts
    index = g.name()
    lines = g.choice(
        (
            [f"if {condition(inner)}:", *indented([*one, f"return {first.text}"]), *two],
            [
                f"if {condition(inner)}:",
                *indented([*one, f"return {first.text}"]),
                f"elif {condition(inner)}:",
                *indented([*two, f"return {second.text}"]),
            ],
            [
                f"for {index} in range(3):",
                *indented(
                    [
                        f"if {index} == 1 or {condition(inner)}:",
                        *indented([*one, f"return {first.text}"]),
                    ]
                ),
            ],
            [
                f"if {condition(inner)}:",
                *indented(
                    [
                        f"if {condition(inner)}:",
                        *indented([*one, f"return {first.text}"]),
                        *two,
                    ]
                ),
                "else:",
                *indented([*two, f"return {second.text}"]),
            ],
        )
    )
    name = defined(g, ", ".join(params), [*lines, *three], third.text)
    texts = ", ".join(each.text for each in args)
    g.bind(union([first, second, third]).named(f"{name}({texts})"))


def late(g: Body) -> None:
    """Functions that see a loop's variable: its last value, unless a default keeps another."""
    need(g.depth < 2)
    x = g.choice(g.arrays())
    need(x.is_real and x.dtype != "bool_")
    p, i, name = g.name(), g.name(), g.name()
    inner = g.nested()
    inner.values = [v for v in inner.values if v.is_real and v.dtype != "bool_"] + [x.named(p)] * 3
    result = inner.expression(1)
    need(result.is_real and result.dtype != "bool_")
    found = made(
        "",
        result.dtype,
        result.shape,
        result.low,
        result.high + 3,
        result.grid and min(result.grid, 1),
    )
    body = f"({result.text} + {i})"
    which = g.randrange(3)
    match g.randrange(6):
        case 0:
            g.lines.append(f"{name} = [lambda {p}: {body} for {i} in range(3)]")
        case 1:
            g.lines.append(f"{name} = [lambda {p}, {i}={i}: {body} for {i} in range(3)]")
        case 2:
            g.lines.append(f"{name} = {{{i}: (lambda {p}, {i}={i}: {body}) for {i} in range(3)}}")
        case 3:
            g.lines += [f"for {i} in range(3):", f"    {name} = lambda {p}: {body}"]
            name, which = f"({name},)", 0
        case 4:
            outer = g.name()
            g.lines += [
                f"def {outer}({i}):",
                f"    def {name}({p}):",
                f"        return {body}",
                f"    return {name}",
            ]
            name = f"[{outer}({i}) for {i} in range(3)]"
        case _:
            g.lines.append(f"{name} = [(lambda {i}: lambda {p}: {body})({i}) for {i} in (2, 1, 0)]")
    g.bind(found.named(f"{name}[{which}]({x.text})"))


def pair(g: Body) -> None:
    """Two functions on one line."""
    need(g.depth < 2)
    x, y = g.choice(g.arrays()), g.choice(g.arrays())
    p, q, one, two = (g.name() for _ in range(4))
    results: list[Array] = []
    for value, param in ((x, p), (y, q)):
        inner = g.nested()
        inner.values += [value.named(param)] * 3
        results.append(inner.expression(1))
    first, second = f"lambda {p}: {results[0].text}", f"lambda {q}: {results[1].text}"
    match g.randrange(4):
        case 0:
            g.lines.append(f"{one}, {two} = ({first}), ({second})")
        case 1:
            g.lines.append(f"{one} = ({first}); {two} = {second}")
        case 2:
            g.lines.append(f'{one} = {{"f": {first}, "g": {second}}}')
            one, two = f'{one}["f"]', f'{one}["g"]'
        case _:
            g.lines.append(f"{one} = [{first}, {second}]")
            one, two = f"{one}[0]", f"{one}[-1]"
    names = g.name(), g.name()
    g.lines.append(f"{names[0]}, {names[1]} = {one}({x.text}), {two}({y.text})")
    g.values += [each.named(name) for each, name in zip(results, names, strict=True)]


def shadowing(g: Body) -> None:
    """A function or comprehension whose variable has the name of a value around it."""
    need(g.depth < 2)
    outer = [v.text for v in g.values if v.text.isidentifier() and v.text != "TABLE"]
    need(bool(outer))
    name, x = g.choice(outer), g.choice(g.arrays())
    inner = g.nested()
    hide(inner, name)
    inner.values += [x.named(name)] * 2
    if g.chance(0.4):
        result = inner.expression()
        g.bind(result.named(f"[{result.text} for {name} in [{x.text}]][0]"))
        return
    inner.steps(g.randrange(2))
    result = inner.expression()
    if not inner.lines and g.chance(0.5):
        g.bind(result.named(f"(lambda {name}: {result.text})({x.text})"))
        return
    function = defined(g, name, inner.lines, result.text)
    g.bind(result.named(f"{function}({x.text})"))


# Functions of functions.


def function_of(g: Body, args: list[Array]) -> tuple[str, Array]:
    """A nested function or lambda of these arguments, and its result."""
    inner = g.nested()
    params = [g.name() for _ in args]
    for _ in range(2):
        inner.values += [x.named(name) for x, name in zip(args, params, strict=True)]
    inner.steps(g.randrange(2))
    result = inner.expression()
    return g.closure(params, inner, result.text), result


def partial(g: Body) -> None:
    """`functools.partial`, by position or by keyword."""
    need(g.depth < 2)
    x, y = g.choice(g.arrays()), g.choice(g.arrays())
    inner = g.nested()
    p, q = g.name(), g.name()
    inner.values += [x.named(p), y.named(q)] * 2
    inner.steps(g.randrange(2))
    result = inner.expression()
    name = g.closure([p, q], inner, result.text)
    text = g.choice(
        (
            f"functools.partial({name}, {x.text})({y.text})",
            f"functools.partial({name}, {q}={y.text})({x.text})",
            f"functools.partial(functools.partial({name}, {x.text}), {q}={y.text})()",
        )
    )
    g.bind(result.named(text))


def reduced(g: Body) -> None:
    """`functools.reduce` with a function of ours."""
    need(g.depth < 2)
    x = g.choice(g.arrays())
    start = g.choice(g.arrays())
    init = g.within(start.dtype, start.shape)
    items = same(g, x, g.randrange(1, 4))
    inner = g.nested()
    s, z = g.name(), g.name()
    carry = replace(stepped(init), text=s)
    inner.values += [carry, union(items).named(z)] * 2
    after = following(inner, carry)
    function = g.closure([s, z], inner, after.text)
    texts = ", ".join(each.text for each in items)
    found = union([replace(after, grid=carry.grid), replace(carry, low=init.low, high=init.high)])
    g.bind(found.named(f"functools.reduce({function}, [{texts}], {init.text})"))


def operated(g: Body) -> None:
    """An operator as a function."""
    x = g.choice(g.arrays())
    need(x.is_real and x.dtype != "bool_")
    a, b, shape = partner(g, x)
    corners = [p * q for p in (a.low, a.high) for q in (b.low, b.high)]
    grid = min(a.grid, b.grid)
    function, low, high, grid = g.choice(
        (
            ("operator.add", a.low + b.low, a.high + b.high, grid),
            ("operator.sub", a.low - b.high, a.high - b.low, grid),
            ("operator.mul", min(corners), max(corners), a.grid * b.grid),
        )
    )
    if g.chance(0.3):
        y = g.choice(g.arrays())
        g.bind(y.named(f"operator.itemgetter(1)(({x.text}, {y.text}))"))
        return
    g.bind(made(f"{function}({a.text}, {b.text})", x.dtype, shape, low, high, grid))


def recomputed(g: Body) -> None:
    """`psc.checkpoint`, and a value without a derivative."""
    need(g.depth < 2)
    if g.chance(0.3):
        x = g.expression(1)
        need(x.is_float)
        g.bind(x.named(f"psc.stop_gradient({x.text})"))
        return
    args = [g.choice(g.arrays()) for _ in range(g.randrange(1, 3))]
    function, result = function_of(g, args)
    policy = g.choice(("", ', policy="dots"', ', policy="everything"'))
    texts = ", ".join(each.text for each in args)
    g.bind(result.named(f"psc.checkpoint({function}{policy})({texts})"))


def batched(g: Body) -> None:
    """`psc.vmap` over some axis of one argument, and perhaps another argument."""
    need(g.depth < 2)
    rows = [v for v in g.arrays() if v.ndim >= 1 and not v.is_batched]
    need(bool(rows))
    x = g.choice(rows)
    axis = g.randrange(x.ndim)
    row = replace(x, shape=x.shape[:axis] + x.shape[axis + 1 :])
    shown = g.choice((axis, axis - x.ndim))
    args, texts, axes = [row], [x.text], [f"{shown}"]
    if g.chance(0.4):
        extra = g.choice(g.arrays())
        args.append(extra)
        texts.append(extra.text)
        axes.append("None")
    function, result = function_of(g, args)
    need(result.ndim < 3 and not result.is_batched)
    out = g.randrange(result.ndim + 1)
    shape = (*result.shape[:out], x.shape[axis], *result.shape[out:])
    options = "" if shown == 0 and len(args) == 1 else f", in_axes=({', '.join(axes)},)"
    if out or g.chance(0.2):
        options += f", out_axes={out}"
    text = f"psc.vmap({function}{options})({', '.join(texts)})"
    g.bind(replace(result, text=text, shape=shape))


def scoped(g: Body) -> None:
    """A block with a name."""
    need(g.depth < 3)
    inner = g.nested()
    inner.steps(g.randrange(2))
    x, name = inner.expression(), g.name()
    g.lines.append(f'with psc.scope("{name}"):')
    g.lines += indented([*inner.lines, f"{name} = {x.text}"])
    g.values.append(x.named(name))


MAPS: tuple[tuple[str, Callable[[Array], tuple[float, float]]], ...] = (
    ("{z} * 2", lambda x: (min(2 * x.low, x.low), max(2 * x.high, x.high))),
    ("{z} + 1", lambda x: (x.low, x.high + 1)),
    ("np.abs({z})", lambda x: (0.0, x.most)),
    ("np.maximum({z}, 1)", lambda x: (max(x.low, 1), max(x.high, 1))),
    ("{z} if {z}.ndim else {z} + 1", lambda x: (x.low, x.high + 1)),
)


def trees(g: Body) -> None:
    """`psc.tree.map` of a tuple, list, dict or record, and other functions of trees."""
    found = [v for v in g.arrays() if v.is_real and v.dtype != "bool_"]
    need(bool(found))
    x, y = g.choice(found), g.choice(found)
    z, name = g.name(), g.name()
    groups = [
        each
        for each in g.generator.records
        if all(leaf.is_real and leaf.dtype != "bool_" for leaf in arrays_of(each))
    ]
    if groups and g.chance(0.4):
        tree = g.choice(groups)
        source, parts = (
            tree.text,
            [
                (leaf, new.text)
                for leaf, new in zip(arrays_of(tree), arrays_of(renamed(tree, name)), strict=True)
            ],
        )
    else:
        source, places = g.choice(
            (
                (f"({x.text}, {y.text})", ("[0]", "[1]")),
                (f"({x.text}, ({y.text}, None))", ("[0]", "[1][0]")),
                (f"[{x.text}, {y.text}]", ("[0]", "[1]")),
                (f"[({x.text},), ({y.text}, {y.text})]", ("[0][0]", "[1][1]")),
            )
        )
        parts = [(x, f"{name}{places[0]}"), (y, f"{name}{places[1]}")]
    if g.chance(0.2):
        g.bind(parts[0][0].named(f"psc.tree.leaves({source})[0]"))
        return
    if g.chance(0.3):
        low = [
            made("", v.dtype, v.shape, min(2 * v.low, v.low), 2 * v.high, v.grid) for v, _ in parts
        ]
        w = g.name()
        text = f"psc.tree.map(lambda {z}, {w}: {z} + {w}, {source}, {source})"
        values = low
    else:
        body, bounds = g.choice(MAPS)
        values = [
            made("", v.dtype, v.shape, *bounds(v), v.grid and min(v.grid, 1.0)) for v, _ in parts
        ]
        text = f"psc.tree.map(lambda {z}: {body.replace('{z}', z)}, {source})"
    need(all(v.low >= 0 for v in values if v.dtype in UNSIGNED))
    g.lines.append(f"{name} = {text}")
    g.values += [v.named(place) for v, (_, place) in zip(values, parts, strict=True)]


STATEMENTS: tuple[tuple[int, Statement], ...] = (
    (2, variadic),
    (2, keyworded),
    (3, early),
    (2, late),
    (2, pair),
    (2, shadowing),
    (2, partial),
    (1, reduced),
    (1, operated),
    (2, recomputed),
    (2, batched),
    (1, scoped),
    (2, trees),
)
