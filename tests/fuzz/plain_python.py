"""Plain Python around arrays: static conditions and loops, comprehensions, assignments."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.fuzz.bodies import Body, Statement, indented
from tests.fuzz.model import COMPLEX, Array, Group, Size, Static
from tests.fuzz.model import at as renamed
from tests.fuzz.model import leaves as arrays_of
from tests.fuzz.operations import made, need, unary
from tests.fuzz.statements import following, stepped, union

# Conditions that are decided while checking.


def condition(g: Body, depth: int = 2) -> str:
    """A condition on what is known while checking, which may turn out either way."""
    if depth > 0 and g.chance(0.4):
        one, other = condition(g, depth - 1), condition(g, depth - 1)
        return g.choice((f"({one} and {other})", f"({one} or {other})", f"(not {one})"))
    statics = g.generator.statics
    if statics and g.chance(0.5):
        return on_static(g, g.choice(statics))
    x = g.choice(g.arrays()).text
    number = g.randrange(3)
    options = [
        f"{x}.ndim == {number}",
        f"0 <= {x}.ndim < {number + 1}",
        f"{x}.ndim in (0, {number})",
        f"{x}.ndim not in {{1, {number}}}",
        f"len({x}.shape) > {number}",
        f"{x} is not None",
        f"{x} is None",
        f"any({x}.ndim == each for each in (1, {number}))",
        f"all({x}.ndim >= each for each in range({number}))",
        f"{x}.dtype == np.float32",
        f"{x}.dtype in (np.int32, np.float64)",
        f"len(SHIFTS) > {number}",
        f"{number} in SHIFTS",
        "0 < SCALE <= 1 != 2",
        f'"abc"[{number}] in {{"a": 1, "b": 2}}',
        f"bool(SHIFTS[{number}:])",
    ]
    return g.choice(options)


def on_static(g: Body, static: Static) -> str:
    """A condition on a static argument."""
    name = static.text
    value, other = g.choice(static.values), g.choice(static.values)
    options = [
        f"{name} == {value!r}",
        f"{name} != {value!r}",
        f"{name} in ({value!r}, {other!r})",
        f"{name} is not None",
    ]
    if static.kind == "bool":
        options += [name, f"(not {name})", f"{name} is True", f"isinstance({name}, bool)"]
    elif static.kind == "int":
        options += [name, f"0 <= {name} < {value}", f"{name} % 2 == 0"]
    else:
        options += [f'{name}.startswith("s")', f"len({name}) == 3", f'{name}[0] + "in" == {name}']
    return g.choice(options)


def blocks(g: Body, x: Array, count: int) -> list[tuple[list[str], Array]]:
    """The lines of blocks, each with a value of this type."""
    found: list[tuple[list[str], Array]] = []
    for _ in range(count):
        inner = g.nested()
        if g.chance(0.5):
            inner.steps(1)
        found.append((inner.lines, inner.like(x.dtype, x.shape)))
    return found


def chain(g: Body) -> None:
    """`if`, `elif` and perhaps `else`, over static conditions."""
    x = g.choice(g.arrays())
    parts = blocks(g, x, g.randrange(2, 4))
    name = g.name()
    joined = union([value for _, value in parts])
    if g.chance(0.4):  # an `if` that changes what was there, and no `else`
        lines, value = parts[0]
        g.lines += [*lines, f"{name} = {value.text}"]
        for lines, value in parts[1:]:
            g.lines.append(f"if {condition(g)}:")
            g.lines += indented([*lines, f"{name} = {value.text}"])
    else:
        for index, (lines, value) in enumerate(parts):
            last = index == len(parts) - 1
            word = "if" if not index else "elif"
            g.lines.append("else:" if last else f"{word} {condition(g)}:")
            g.lines += indented([*lines, f"{name} = {value.text}"])
    g.values.append(joined.named(name))


def chosen(g: Body) -> None:
    """Conditional expressions in each other, `and` and `or` of arrays with what is static."""
    x = g.choice(g.arrays())
    one, two, three = (g.like(x.dtype, x.shape) for _ in range(3))
    test = condition(g)
    options = [
        f"({one.text} if {test} else {two.text} if {condition(g)} else {three.text})",
        f"(({one.text}, {two.text})[bool({test})], {three.text})[0]",
        f"{{True: {one.text}, False: {two.text}}}[bool({test})]",
        f"[{one.text}, {two.text}, {three.text}][1 if {test} else -1]",
    ]
    g.bind(union([one, two, three]).named(g.choice(options)))


def guarded(g: Body) -> None:
    """A `raise` that is not reached, or that excludes a static value."""
    numbers = [each.text for each in g.generator.statics if each.kind == "int"]
    x = g.choice(g.arrays())
    if numbers and g.chance(0.5):
        name = g.choice(numbers)
        g.lines.append(f"if {name} > 3:")
        g.lines.append(f'    raise ValueError(f"{{{name}}} is too large")')
    elif g.chance(0.5):
        g.lines.append(f"assert {x.text} is not None and {x.text}.ndim >= 0, 'no array'")
    else:
        g.lines.append(f"if not 0 <= {x.text}.ndim:")
        g.lines.append(f'    raise TypeError(f"{{{x.text}.shape}}")')


# Loops that are unrolled.


def carry_of(g: Body) -> tuple[Array, Array]:
    """What a loop starts with, bound to a name, and what it carries."""
    found = [v for v in g.arrays() if v.dtype not in COMPLEX]
    need(bool(found))
    x = g.choice(found)
    init = g.within(x.dtype, x.shape)
    name = g.name()
    g.lines.append(f"{name} = {init.text}")
    return init.named(name), replace(stepped(init), text=name)


def carried_on(g: Body, init: Array, carry: Array) -> None:
    """What the carry is after the loop."""
    g.values.append(replace(carry, low=min(carry.low, init.low), high=max(carry.high, init.high)))


def number(g: Body) -> str:
    """How often a loop runs."""
    counts = [v.text for v in g.generator.statics if v.kind == "int"]
    return g.choice([*counts, "2", "3", "len(SHIFTS)"])


def counting(g: Body) -> None:
    """A `while` loop with a counter."""
    need(g.depth < 3)
    init, carry = carry_of(g)
    inner = g.nested()
    inner.values.append(carry)
    inner.steps(g.randrange(2))
    index, count = g.name(), number(g)
    lines = [*inner.lines, f"{carry.text} = {following(inner, carry).text}"]
    up = f"{index} += 1"
    match g.randrange(5):
        case 0:
            g.lines += [f"{index} = 0", f"while {index} < {count}:"]
            body = [*lines, up]
        case 1:
            g.lines += [f"{index} = 0", f"while {index} < {count} and {index} != 3:"]
            body = [up, f"if {index} == 2:", "    continue", *lines]
        case 2:
            g.lines += [f"{index} = 0", "while True:"]
            body = [f"if {index} >= {count}:", "    break", up, *lines]
        case 3:
            g.lines += [f"{index} = {count}", f"while {index}:"]
            body = [f"{index} -= 1", *lines]
        case _:
            g.lines += [f"{index} = -1", f"while ({index} := {index} + 1) < {count}:"]
            body = lines
    g.lines += indented(body)
    if g.chance(0.3):
        g.lines += [
            "else:",
            *indented([f"{carry.text} = {g.within(carry.dtype, carry.shape).text}"]),
        ]
    carried_on(g, init, carry)


def same(g: Body, x: Array, count: int) -> list[Array]:
    """Several values of one type."""
    return [g.like(x.dtype, x.shape, 1) for _ in range(count)]


def walked(g: Body, items: list[Array]) -> tuple[str, str, Array, str]:
    """A pattern and what is iterated, over these values; what one is, and a static name or ""."""
    name, index = g.name(), g.name()
    texts = [each.text for each in items]
    listed = g.choice((f"[{', '.join(texts)}]", f"({', '.join(texts)},)"))
    pairs = ", ".join(f'"{key}": {text}' for key, text in zip("abcd", texts, strict=False))
    ones = ", ".join(f"({each}, {text})" for each, text in enumerate(texts))
    pattern, source, static = g.choice(
        (
            (name, listed, ""),
            (name, f"reversed({listed})", ""),
            (name, f"{listed}[::-1]", ""),
            (name, f"{{{pairs}}}.values()", ""),
            (f"{index}, {name}", f"enumerate({listed})", index),
            (f"({index}, {name})", f"enumerate({listed}, start=1)", index),
            (f"{index}, {name}", f"zip(range({len(items)}), {listed})", index),
            (f"{name}, {index}", f"zip({listed}, SHIFTS * 2, strict=False)", index),
            (f"{index}, {name}", f"[{ones}]", index),
            (f"{index}, (_, {name})", f"enumerate({{{pairs}}}.items())", index),
            (f"{index}, [{name}, *_]", f"enumerate(zip({listed}, {listed}))", index),
        )
    )
    return pattern, source, union(items).named(name), static


def iterated(g: Body) -> None:
    """A `for` loop over arrays or static values, with `break`, `continue` and `else`."""
    need(g.depth < 3)
    init, carry = carry_of(g)
    inner = g.nested()
    inner.values.append(carry)
    left: list[Array] = []
    if g.chance(0.6):
        items = same(g, g.choice(g.arrays()), g.randrange(1, 4))
        pattern, source, one, static = walked(g, items)
        inner.values += [one, one]
        left = [one]  # Python keeps the last one
    else:
        pattern = static = g.name()
        source = g.choice(("range(5)[::2]", "range(3, 0, -1)", "sorted((2, 0, 1))", "SHIFTS"))
    inner.steps(g.randrange(2))
    lines = [*inner.lines, f"{carry.text} = {following(inner, carry).text}"]
    if static and g.chance(0.6):
        word = g.choice(("break", "continue"))
        test = g.choice((f"{static} == 1", f"{static} > 1", f"0 < {static} < 2", f"not {static}"))
        lines.insert(0, f"if {test}:")
        lines.insert(1, f"    {word}")
    g.lines += [f"for {pattern} in {source}:", *indented(lines)]
    if g.chance(0.3):
        again = g.within(carry.dtype, carry.shape)
        g.lines += ["else:", *indented([f"{carry.text} = {again.text}"])]
    carried_on(g, init, carry)
    g.values += left


def twice(g: Body) -> None:
    """A loop in a loop, of which `break` leaves one."""
    need(g.depth < 2)
    init, carry = carry_of(g)
    inner = g.nested()
    inner.values.append(carry)
    one, two = g.name(), g.name()
    text = following(inner, carry).text
    test = g.choice((f"{two} > {one}", f"{one} == {two}", f"({one} + {two}) % 2"))
    g.lines += [
        f"for {one} in range({g.randrange(1, 4)}):",
        f"    for {two} in range({g.randrange(1, 3)}):",
        f"        if {test}:",
        f"            {g.choice(('break', 'continue', 'pass'))}",
        f"        {carry.text} = {text}",
    ]
    carried_on(g, init, carry)


# Comprehensions.


def gathered(g: Body) -> None:
    """A comprehension over arrays, and what is made of it."""
    items = same(g, g.choice(g.arrays()), g.randrange(1, 4))
    pattern, source, one, static = walked(g, items)
    inner = g.nested()
    inner.values += [one, one, one]
    item = inner.expression(1)
    need(not item.is_batched or item.ndim < 3)
    count = len(items)
    heads = [f"for {pattern} in {source}"]
    if (
        static
        and g.chance(0.3)
        and count > 1
        and " start=1" not in source
        and "SHIFTS" not in source
    ):
        heads.append(f"if {static} != {g.randrange(count)}")
        count -= 1
    if g.chance(0.2):
        heads.insert(g.choice((0, len(heads))), f"for {g.name()} in range(2)")
        count *= 2
    text = f"{item.text} {' '.join(heads)}"
    if g.chance(0.15):
        key = g.name()
        whole = f"{{str({key}): {item.text} for {key}, ({pattern}) in enumerate({source})}}"
        name = g.name()
        g.lines.append(f"{name} = {whole}")
        g.values += [item.named(f'{name}["0"]'), item.named(f"list({name}.values())[-1]")]
        return
    summing(g, item, text, count)


def summing(g: Body, item: Array, text: str, count: int) -> None:
    """One value of many: a part, a stack, a sum or a reduction."""
    name = g.name()
    options = ["list", "tuple"]
    if item.is_real and item.dtype != "bool_":
        options += ["sum", "reduce"]
    if not item.is_batched and item.ndim < 3:
        options += ["stack"]
    match g.choice(options):
        case "sum":
            low, high = min(item.low * count, item.low, 0), max(item.high * count, item.high, 0)
            total = g.choice((f"sum({text})", f"sum([{text}])", f"sum([{text}][:{count}], 0)"))
            g.bind(made(total, item.dtype, item.shape, low, high, item.grid))
        case "reduce":
            function = g.choice(("np.maximum", "np.minimum", "lambda a, b: np.maximum(b, a)"))
            g.bind(item.named(f"functools.reduce({function}, [{text}])"))
        case "stack":
            g.bind(replace(item, shape=(Size.of(count), *item.shape), text=f"np.stack([{text}])"))
        case "tuple":
            g.lines.append(f"{name} = tuple({text})")
            g.values += [item.named(f"{name}[0]"), item.named(f"{name}[len({name}) - 1]")]
        case _:
            if count == 2:
                other = g.name()
                pattern = g.choice((f"{name}, {other}", f"[{name}, {other}]"))
                g.lines.append(f"{pattern} = [{text}]")
                g.values += [item.named(name), item.named(other)]
                return
            g.lines.append(f"{name} = [{text}]")
            g.values += [item.named(f"{name}[0]"), item.named(f"{name}[-1]")]


def weighted(g: Body) -> None:
    """A sum over several static loops with conditions, or with a name bound in one."""
    x = g.choice(g.arrays())
    need(x.is_real and x.dtype != "bool_")
    i, j = g.name(), g.name()
    heads, most = g.choice(
        (
            (f"for {i} in range(4) if {i} % 2 for {j} in range({i})", 12),
            (f"for {i} in range(3) for {j} in range(3) if {i} != {j}", 12),
            (f"for {i}, {j} in zip(SHIFTS, SHIFTS[::-1])", 4),
            (f"for {i} in range(4) if ({j} := {i} % 3)", 8),
            (f"for {j}, {i} in sorted({{2: 1, 0: 2}}.items())", 6),
            (f"for {i}, {j} in ((1, 0), (2, 1))", 6),
        )
    )
    low, high = min(0, x.low) * most, max(0, x.high) * most
    text = f"sum([{x.text} * ({i} + {j}) {heads}])"
    g.bind(made(text, x.dtype, x.shape, low * 2, high * 2, x.grid and min(x.grid, 1.0)))


# Assignments.


def unpacked(g: Body) -> None:
    """A starred pattern, or one in another."""
    x, y, z = (g.choice(g.arrays()) for _ in range(3))
    a, b, c = g.name(), g.name(), g.name()
    texts = f"{x.text}, {y.text}, {z.text}"
    match g.randrange(6):
        case 0:
            g.lines.append(f"{a}, *{b} = [{texts}]")
            found = [x.named(a), y.named(f"{b}[0]"), z.named(f"{b}[-1]")]
        case 1:
            g.lines.append(f"*{a}, {b} = {texts}")
            found = [x.named(f"{a}[0]"), y.named(f"{a}[1]"), z.named(b)]
        case 2:
            g.lines.append(f"({a}, {b}), {c} = ({x.text}, {y.text}), {z.text}")
            found = [x.named(a), y.named(b), z.named(c)]
        case 3:
            g.lines.append(f"{a}, ({b}, *{c}) = {x.text}, ({y.text}, {z.text})")
            found = [x.named(a), y.named(b), z.named(f"{c}[0]")]
        case 4:
            g.lines.append(f"{a} = {b} = {x.text}")
            found = [x.named(a), x.named(b)]
        case _:
            g.lines.append(f"{a}, {b} = (({texts}) + ({x.text},))[1:3]")
            found = [y.named(a), z.named(b)]
    g.values += found


def collected(g: Body) -> None:
    """Tuples, lists and dicts that are put together from others."""
    x, y = g.choice(g.arrays()), g.choice(g.arrays())
    name = g.name()
    text, parts = g.choice(
        (
            (f'{{**{{"a": {x.text}, "b": {x.text}}}, "b": {y.text}}}', ('["a"]', '["b"]')),
            (f'({{"a": {x.text}}} | {{"b": {y.text}}})', ('["a"]', '["b"]')),
            (f"dict(a={x.text}, b={y.text})", ('["a"]', '.get("b")')),
            (f"[*({x.text},), {y.text}]", ("[0]", "[1]")),
            (f"(*[{x.text}], *[{y.text}] * 2)", ("[0]", "[2]")),
            (f"[[{x.text}, {x.text}], [{y.text}]]", ("[0][1]", "[1][0]")),
            (f"list(zip([{x.text}], [{y.text}]))[0]", ("[0]", "[-1]")),
            (f"{{f'{{each}}': {x.text} for each in (1, 2)}} | {{3: {y.text}}}", ('["2"]', "[3]")),
        )
    )
    g.lines.append(f"{name} = {text}")
    g.values += [x.named(f"{name}{parts[0]}"), y.named(f"{name}{parts[1]}")]


def walrus(g: Body) -> None:
    """A name that is bound inside of an expression."""
    x = g.expression(1)
    name = g.name()
    bound = f"({name} := {x.text})"
    if g.chance(0.3):
        g.lines += [f"if {bound}.ndim >= 0:", *indented([f"{g.name()} = {name}"])]
    elif g.chance(0.4):
        y, other = g.choice(g.arrays()), g.name()
        g.lines.append(f"{other} = [{bound}, {y.text}, {name}][{g.choice((0, 2))}]")
        g.values.append(x.named(other))
    else:
        found = unary(g, x.named(bound))
        need(found.text.count(bound) == 1)
        g.bind(found)
    g.values.append(x.named(name))


def mentions(text: str, name: str) -> bool:
    """Whether code mentions a name."""
    return re.search(rf"\b{name}\b", text) is not None


def hide(g: Body, name: str) -> None:
    """Forget what is written with a name that stands for something else from here on."""
    g.values[:] = [each for each in g.values if not mentions(each.text, name)]
    g.sizes = {each: text for each, text in g.sizes.items() if not mentions(text, name)}


def rebound(g: Body) -> None:
    """A name of this block that gets another value, of any type; or two that change places."""
    own = {line.split(" = ")[0] for line in g.lines if re.match(r"\w+ = ", line)}
    names = [each.text for each in g.values if each.text in own]
    need(bool(names))
    name = g.choice(names)
    match g.randrange(4):
        case 0:
            need(len(set(names)) > 1 and len(g.values) > len(set(names)))
            other = g.choice([each for each in names if each != name])
            one, two = (next(v for v in g.values if v.text == each) for each in (name, other))
            g.lines.append(f"{name}, {other} = {other}, {name}")
            hide(g, name)
            hide(g, other)
            g.values += [one.named(other), two.named(name)]
        case 1:
            rest = [each for each in g.values if not mentions(each.text, name)]
            need(bool(rest))
            g.lines.append(f"del {name}")
            hide(g, name)
        case _:
            found = g.expression()
            g.lines.append(f"{name} = {found.text}")
            hide(g, name)
            g.values.append(found.named(name))


def annotated(g: Body) -> None:
    """An assignment with a type."""
    need(g.depth == 0 and not g.generator.inside_helper)
    x = g.expression()
    need(not x.is_batched)
    name = g.name()
    g.lines.append(f"{name}: {x.annotation()} = {x.text}")
    g.values.append(x.named(name))


# Records.


def record(g: Body) -> None:
    """A record with other parts than one that was given, or a new one."""
    groups = g.generator.records
    need(bool(groups))
    group = g.choice(groups)
    head = g.generator.heads[group.record]
    chosen = [name for name, value in group.fields if isinstance(value, Array)]
    fields = dict(group.fields)
    news: dict[str, Array] = {}
    for name in g.sample(chosen, g.randrange(1, len(chosen) + 1)):
        old = fields[name]
        assert isinstance(old, Array)
        news[name] = g.like(old.dtype, old.shape)
    given = ", ".join(f"{name}={value.text}" for name, value in news.items())
    if len(news) == len(fields) and g.chance(0.5):
        text = f"{group.record}({given})"
    elif "NamedTuple" in head:
        text = f"{group.text}._replace({given})"
    elif "psc.Record" in head and g.chance(0.5):
        text = f"{group.text}.replace({given})"
    else:
        text = f"dataclasses.replace({group.text}, {given})"
    name = g.name()
    g.lines.append(f"{name} = {text}")
    items = tuple((each, news.get(each, value)) for each, value in group.fields)
    g.values += arrays_of(renamed(Group(name, items, group.record), name))


STATEMENTS: tuple[tuple[int, Statement], ...] = (
    (2, chain),
    (2, chosen),
    (1, guarded),
    (2, counting),
    (3, iterated),
    (1, twice),
    (3, gathered),
    (1, weighted),
    (2, unpacked),
    (1, collected),
    (2, walrus),
    (2, rebound),
    (1, annotated),
    (2, record),
)
