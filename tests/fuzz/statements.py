"""Statements: bindings, functions, static control flow and combinators."""

from __future__ import annotations

from dataclasses import replace

from tests.fuzz import library
from tests.fuzz.bodies import Body, Statement, argument, indented
from tests.fuzz.model import COMPLEX, UNSIGNED, Array, Inapplicable, Size, Static
from tests.fuzz.operations import binary, need


def binding(g: Body) -> None:
    """`name = expression`."""
    g.bind(g.expression())


def several(g: Body) -> None:
    """`a, b = …, …`."""
    first, second = g.expression(1), g.expression(1)
    names = g.name(), g.name()
    g.lines.append(f"{names[0]}, {names[1]} = {first.text}, {second.text}")
    g.values += [first.named(names[0]), second.named(names[1])]


def augmented(g: Body) -> None:
    """`name += expression`."""
    x = binary(g, g.choice(g.arrays()))  # what no other name stands for
    need(x.is_real and bool(x.shape))
    y = g.like(x.dtype, x.shape, 1) if g.chance(0.6) else g.number(x)
    total = replace(
        x, low=x.low + y.low, high=x.high + y.high, grid=min(x.grid, y.grid), text=g.name()
    )
    need(total.fits)
    g.lines += [f"{total.text} = {x.text}", f"{total.text} += {y.text}"]
    g.bind(total.named(f"+{total.text}"))  # what is updated may not be handed on


def called(g: Body) -> None:
    """A nested function or lambda, and its call."""
    need(g.depth < 2)
    args = [g.choice(g.arrays()) for _ in range(g.randrange(1, 3))]
    inner = g.nested()
    params = [g.name() for _ in args]
    inner.values += [x.named(name) for x, name in zip(args, params, strict=True)]
    inner.steps(g.randrange(3))
    result = inner.expression()
    function = g.closure(params, inner, result.text)
    texts = [x.text for x in args]
    if function.isidentifier() and g.chance(0.2):
        texts[-1] = f"{params[-1]}={texts[-1]}"
    g.bind(result.named(f"{function}({', '.join(texts)})"))


def helper(g: Body) -> None:
    """A call of a function of the module."""
    args = [g.choice(g.arrays()) for _ in range(g.randrange(1, 3))]
    found = g.generator.helper(args, g.bounds)
    texts = ", ".join(x.text for x in args)
    g.bind(found[1].named(f"{found[0]}({texts})"))


def kernel(g: Body) -> None:
    """A call of another kernel, whose sizes are some of ours."""
    callee = g.generator.callee()
    sizes: dict[str, Size] = {}
    for name in sorted(callee.sizes):
        need(bool(g.sizes))
        size = Size.of(g.choice(sorted(g.sizes)))
        sizes[name] = size + 1 if g.chance(0.2) else size
        need(g.least(sizes[name]) >= callee.bounds.get(name, 1))
    texts: list[str] = []
    for parameter in callee.arguments:
        need(isinstance(parameter, Array))
        assert isinstance(parameter, Array)
        shape = tuple(size.substituted(sizes) for size in parameter.shape)
        texts.append(g.within(parameter.dtype, shape).text)
    results: list[Array] = []
    for each in callee.results:
        shape = tuple(size.substituted(sizes) for size in each.shape)
        results.append(replace(each, shape=shape, grid=0.0 if each.is_float else each.grid))
    text = f"{callee.name}({', '.join(texts)})"
    if len(results) == 1:
        g.bind(results[0].named(text))
        return
    names = [g.name() for _ in results]
    g.lines.append(f"{', '.join(names)} = {text}")
    g.values += [each.named(name) for each, name in zip(results, names, strict=True)]


def branch(g: Body, params: list[Array], wanted: list[Array]) -> tuple[str, list[Array]]:
    """A function of values to results of given types; its name, and its results."""
    inner = g.nested()
    names = [g.name() for _ in params]
    inner.values += [x.named(name) for x, name in zip(params, names, strict=True)]
    if g.chance(0.3):
        inner.steps(1)
    results = [inner.like(each.dtype, each.shape) for each in wanted]
    return g.closure(names, inner, _tuple(results)), results


def _tuple(values: list[Array]) -> str:
    texts = [value.text for value in values]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def union(values: list[Array]) -> Array:
    """What any one of these values may be."""
    grid = min(value.grid for value in values)
    low, high = min(value.low for value in values), max(value.high for value in values)
    return replace(values[0], low=low, high=high, grid=grid)


def predicate(g: Body) -> str:
    """A scalar truth value."""
    found = [v.text for v in g.values if v.dtype == "bool_" and not v.shape]
    if found and g.chance(0.6):
        return g.choice(found)
    exact = [v for v in g.values if v.is_exact and v.is_real and not v.is_batched]
    need(bool(exact))
    x = g.choice(exact)
    return (
        f"({x.text}{'.sum()' if x.shape and x.grid else ''} > 1)"
        if not x.shape
        else (f"np.any({x.text} > 1)")
    )


def conditional(g: Body) -> None:
    """`psc.cond` or `psc.switch`."""
    need(g.depth < 2)
    wanted = [g.choice(g.arrays()) for _ in range(g.randrange(1, 3))]
    params = [g.choice(g.arrays()) for _ in range(g.randrange(3))]
    operands = "".join(f", {x.text}" for x in params)
    count = 2 if g.chance(0.7) else 3
    made = [branch(g, params, wanted) for _ in range(count)]
    if count == 2:
        text = f"psc.cond({predicate(g)}, {made[0][0]}, {made[1][0]}{operands})"
    else:
        index = [v.text for v in g.values if v.dtype == "i32" and not v.shape]
        if not index:
            index = [f"np.where({predicate(g)}, np.int32(2), np.int32({g.randrange(-1, 2)}))"]
        names = ", ".join(name for name, _ in made)
        text = f"psc.switch({g.choice(index)}, [{names}]{operands})"
    results = [union([each[1][i] for each in made]) for i in range(len(wanted))]
    bind_all(g, text, results)


def bind_all(g: Body, text: str, results: list[Array]) -> None:
    """Name one result or several."""
    if len(results) == 1:
        g.bind(results[0].named(text))
        return
    names = [g.name() for _ in results]
    g.lines.append(f"{', '.join(names)} = {text}")
    g.values += [each.named(name) for each, name in zip(results, names, strict=True)]


def carried(g: Body) -> tuple[list[Array], list[Array]]:
    """Initial values of a carry, and what the carry is in the loop."""
    found = [v for v in g.arrays() if v.dtype not in COMPLEX and v.ndim <= 2]
    need(bool(found))
    inits: list[Array] = []
    for x in [g.choice(found) for _ in range(g.randrange(1, 3))]:
        inits.append(g.within(x.dtype, x.shape))
    return inits, [stepped(x) for x in inits]


def stepped(x: Array) -> Array:
    """What a carry is while the loop runs."""
    found = argument("", x.dtype, x.shape)
    return replace(found, grid=0.0) if x.is_float else found


def following(g: Body, carry: Array) -> Array:
    """The next value of a carry."""
    return replace(g.within(carry.dtype, carry.shape), grid=carry.grid)


def scanned(g: Body) -> None:
    """`psc.scan` over some of the arrays with a common leading axis, or of a static length."""
    need(g.depth < 1 or (g.depth < 2 and g.chance(0.3)))
    rows = [v for v in g.arrays() if v.ndim >= 1 and not v.is_batched and v.shape[0].names()]
    inits, carries = carried(g)
    inner = g.nested()
    names = [g.name() for _ in carries]
    values = [x.named(name) for x, name in zip(carries, names, strict=True)]
    row = g.name()
    given: list[Array] = []
    if rows and g.chance(0.8):
        first = g.choice(rows)
        given = [first, *(v for v in rows if v.shape[0] == first.shape[0] and g.chance(0.2))][:2]
        length, source = first.shape[0], _tuple(given)
    else:
        number = g.randrange(1, 4)
        length, source = Size.of(number), f"length={number}"
    carry = names[0]
    if len(names) > 1:
        carry = g.name()
        inner.lines.append(f"{', '.join(names)} = {carry}")
    inner.values += values
    for index, x in enumerate(given):
        text = row if len(given) == 1 else f"{row}[{index}]"
        inner.values.append(replace(x, shape=x.shape[1:], text=text))
    inner.steps(g.randrange(3))
    stacked = inner.expression(1)
    need(stacked.ndim < 3 and not stacked.is_batched)
    nexts = [following(inner, each) for each in carries]
    inner.lines.append(f"return {_tuple(nexts)}, {stacked.text}")
    step = g.name()
    g.lines += [f"def {step}({carry}, {row}):", *indented(inner.lines)]
    reverse = ", reverse=True" if g.chance(0.2) else ""
    text = f"psc.scan({step}, {_tuple(inits)}, {source}{reverse})"
    targets, rest = [g.name() for _ in carries], g.name()
    g.lines.append(f"{_names(targets)}, {rest} = {text}")
    g.values += [x.named(name) for x, name in zip(carries, targets, strict=True)]
    g.values.append(replace(stacked, text=rest, shape=(length, *stacked.shape)))


def _names(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def mapped(g: Body) -> None:
    """`psc.map`."""
    need(g.depth < 2)
    rows = [v for v in g.arrays() if v.ndim >= 1 and not v.is_batched]
    need(bool(rows))
    x = g.choice(rows)
    inner = g.nested()
    name = g.name()
    inner.values.append(replace(x, shape=x.shape[1:], text=name))
    inner.steps(g.randrange(2))
    result = inner.expression()
    need(result.ndim < 3 and not result.is_batched)
    function = g.closure([name], inner, result.text)
    text = f"psc.map({function}, {x.text})"
    g.bind(replace(result, text=text, shape=(x.shape[0], *result.shape)))


def combined(g: Body) -> None:
    """`psc.associative_scan` or `psc.map_reduce`."""
    need(g.depth < 2)
    rows = [v for v in g.arrays() if v.ndim >= 1 and not v.is_batched and v.dtype not in COMPLEX]
    rows = [v for v in rows if v.dtype != "bool_"]
    need(bool(rows))
    x, combine = g.choice(rows), g.choice(["np.maximum", "lambda a, b: np.minimum(b, a)"])
    if g.chance(0.5):
        axis = f", axis={g.randrange(-x.ndim, x.ndim)}" if g.chance(0.5) else ""
        reverse = ", reverse=True" if g.chance(0.3) else ""
        g.bind(replace(x, text=f"psc.associative_scan({combine}, {x.text}{reverse}{axis})"))
        return
    inner = g.nested()
    name = g.name()
    inner.values.append(replace(x, shape=x.shape[1:], text=name))
    inner.steps(g.randrange(2))
    result = inner.like(x.dtype, x.shape[1:])
    function = g.closure([name], inner, result.text)
    start = g.within(x.dtype, x.shape[1:]) if g.chance(0.4) else result
    text = f"psc.map_reduce({function}, {combine}, {x.text}"
    text += ")" if start is result else f", init={start.text})"
    g.bind(replace(union([start, result]), text=text))


def counted(g: Body) -> None:
    """`psc.fori_loop`."""
    need(g.depth < 2)
    inits, carries = carried(g)
    inner = g.nested()
    index, carry = g.name(), g.name()
    names = [carry] if len(carries) == 1 else [f"{carry}[{i}]" for i in range(len(carries))]
    inner.values.append(Array(index, "i32", (), 0, 4, 1.0))
    inner.values += [x.named(name) for x, name in zip(carries, names, strict=True)]
    inner.steps(g.randrange(2))
    nexts = [following(inner, each) for each in carries]
    function = g.closure([index, carry], inner, _tuple(nexts))
    upper = g.choice(["2", "3", *g.sizes.values()])
    bind_all(g, f"psc.fori_loop(0, {upper}, {function}, {_tuple(inits)})", carries)


def repeated(g: Body) -> None:
    """`psc.while_loop` that counts."""
    need(g.depth < 2)
    inits, carries = carried(g)
    inner = g.nested()
    carry = g.name()
    names = [f"{carry}[{i + 1}]" for i in range(len(carries))]
    inner.values.append(Array(f"{carry}[0]", "i32", (), 0, 4, 1.0))
    inner.values += [x.named(name) for x, name in zip(carries, names, strict=True)]
    inner.steps(g.randrange(2))
    nexts = [following(inner, each).text for each in carries]
    function = g.closure([carry], inner, f"({carry}[0] + 1, {', '.join(nexts)})")
    start = ", ".join(["np.int32(0)", *(x.text for x in inits)])
    most = g.choice(("", "", ", max_steps=5"))
    text = f"psc.while_loop(lambda c: c[0] < {g.randrange(1, 4)}, {function}, ({start}){most})"
    counter = Array("", "i32", (), 0, 4, 1.0)
    bind_all(g, text, [counter, *carries])


def static_loop(g: Body) -> None:
    """A Python loop that is unrolled."""
    found = [v for v in g.arrays() if v.dtype not in COMPLEX]
    need(bool(found))
    x = g.choice(found)
    init = g.within(x.dtype, x.shape)
    name, index = g.name(), g.name()
    g.lines.append(f"{name} = {init.text}")
    carry = replace(stepped(x), text=name)
    inner = g.nested()
    inner.values.append(carry)
    inner.steps(g.randrange(2))
    counts = [v.text for v in g.generator.statics if v.kind == "int"]
    count = g.choice([*counts, "3"])
    text = following(inner, carry).text
    g.lines.append(f"for {index} in range({count}):")
    g.lines += indented([*inner.lines, f"{name} = {text}"])
    g.values.append(replace(carry, low=min(carry.low, init.low), high=max(carry.high, init.high)))


def static_branch(g: Body) -> None:
    """A Python `if` that is decided while checking, or a conditional expression."""
    x = g.choice(g.arrays())
    conditions = [f"{x.text}.ndim == {x.ndim}"] if not x.is_batched else []
    for each in g.generator.statics:
        conditions.append(decision(each, g))
    need(bool(conditions))
    condition = g.choice(conditions)
    one, other = g.nested(), g.nested()
    for body in (one, other):
        body.steps(g.randrange(2))
    results = [body.like(x.dtype, x.shape) for body in (one, other)]
    joined, name = union(results), g.name()
    if not one.lines and not other.lines and g.chance(0.5):
        g.bind(joined.named(f"({results[0].text} if {condition} else {results[1].text})"))
        return
    g.lines.append(f"if {condition}:")
    g.lines += indented([*one.lines, f"{name} = {results[0].text}"])
    g.lines.append("else:")
    g.lines += indented([*other.lines, f"{name} = {results[1].text}"])
    g.values.append(joined.named(name))


def decision(static: Static, g: Body) -> str:
    """A condition on a static value."""
    if static.kind == "bool":
        return static.text
    if static.kind == "int":
        return f"{static.text} > {g.randrange(3)}"
    return f"{static.text} == {g.choice(static.values)!r}"


def comprehension(g: Body) -> None:
    """A list of values that is summed or stacked."""
    x = g.choice(g.arrays())
    need(x.dtype not in COMPLEX and x.dtype != "bool_" and x.ndim < 3)
    index = g.name()
    most = x.most * 3 + 6
    low = 0.0 if x.dtype in UNSIGNED else -most
    item = f"{x.text} * {index} + 1"
    total = Array("", x.dtype, x.shape, low, 2 * most, x.grid and min(x.grid, 1.0))
    need(total.fits)
    items = f"[{item} for {index} in range(3)]"
    if g.chance(0.5) and not x.is_batched:
        found = replace(total, shape=(Size.of(3), *x.shape))
        g.bind(found.named(f"np.stack({items})"))
    else:
        need(replace(total, high=6 * most, low=-6 * most).most < 1e4 and total.fits)
        wide = replace(total, low=3 * total.low, high=3 * total.high)
        need(wide.fits)
        g.bind(wide.named(f"sum({items})"))


def recorded(g: Body) -> None:
    """A tuple, a dict or a record of values, and one of its parts."""
    found = [g.choice(g.arrays()) for _ in range(2)]
    name = g.name()
    texts = [each.text for each in found]
    if g.chance(0.5):
        g.lines.append(f"{name} = ({', '.join(texts)})")
        parts = [f"{name}[0]", f"{name}[-1]"]
    else:
        g.lines.append(f'{name} = {{"a": {texts[0]}, "b": {texts[1]}}}')
        parts = [f'{name}["a"]', f'{name}["b"]']
    g.values += [each.named(part) for each, part in zip(found, parts, strict=True)]


def asserted(g: Body) -> None:
    """A fact that the signature implies."""
    found = [
        v
        for v in g.arrays()
        if v.shape and v.shape[0].names() and not v.is_batched and v.text.isidentifier()
    ]
    if not found:
        raise Inapplicable
    x = g.choice(found)
    g.lines.append(f'assert {x.text}.shape[0] >= {g.least(x.shape[0])}, f"{{{x.text}.shape}}"')


STATEMENTS: tuple[tuple[int, Statement], ...] = (
    (30, binding),
    (3, several),
    (3, augmented),
    (3, called),
    (3, helper),
    (3, kernel),
    (3, conditional),
    (3, scanned),
    (2, mapped),
    (2, combined),
    (2, counted),
    (2, repeated),
    (3, static_loop),
    (3, static_branch),
    (2, comprehension),
    (2, recorded),
    (1, asserted),
    (3, library.solved),
    (2, library.drawn),
    (1, library.recurrence),
)
