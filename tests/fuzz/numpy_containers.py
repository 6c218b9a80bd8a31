"""Random statements over lists, dicts, functions, generators and combinators that hold arrays."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.numpy_statements import Statements
from tests.fuzz.numpy_templates import ORDERS
from tests.fuzz.numpy_values import Array, Pile, Routine, Scope

RESULTS = (
    *(("none", ""), ("same", "z"), ("same", "z"), ("same", "z[::-1]"), ("same", "np.asarray(z)")),
    *(("same", "z.reshape(-1)"), ("number", "z.sum()"), ("number", "z[0]"), ("new", "z + v")),
    *(("number", "v + z[-1]"), ("new", "z.copy()"), ("same", "(lambda e: e[:])(z)")),
)
"""What functions return: how that goes together with their argument, and a text."""

EARLIER = {
    "same": ("    if z[0] > v:", "        return z"),
    "new": ("    if z[0] > v:", "        z[0] = v", "        return z * 2"),
    "number": (
        *("    for j in range(2):", "        if z[0] > v + j:", "            return v * 1.0"),
    ),
}
"""What functions may return before."""


class Containers(Statements):
    """Writes what arrays are put into, and what is called with them."""

    def __init__(self, seed: int, shared: bool) -> None:
        super().__init__(seed, shared)
        self.parts: list[str] = []
        """What stands in the module before the function."""

    def enable(self) -> None:
        """Choose the statements of a program: some of each family."""
        basic: list[Callable[[], bool]] = [self.store, self.store, self.in_place, self.fresh]
        some: list[Callable[[], bool]] = [
            *(self.method, self.method, self.fancy, self.masked, self.exchange, self.alias),
            *(self.alias, self.view, self.view, self.rebind, self.swap, self.together),
            *(self.number, self.listed, self.changed, self.dict_of, self.walked, self.closure),
            *(self.called, self.ordered, self.delayed, self.combined, self.recorded),
            *(self.bound_method, self.unpacked),
        ]
        if not self.straight:
            some += [self.branch, self.joined, self.leave, self.counted, self.over, self.waiting]
            some += [self.branch, self.counted]
        share = self.rng.choice((0.15, 0.3, 0.5))
        self.enabled = basic + [each for each in some if self.chance(share)]
        if self.scope.routines:
            self.enabled += [self.called, self.ordered]
        if self.closure in self.enabled:
            self.enabled += [self.called, self.ordered]
        if self.listed in self.enabled or self.dict_of in self.enabled:
            self.enabled += [self.changed, self.changed, self.walked]

    # Lists and dicts.

    def items(self) -> tuple[list[Array], Array] | None:
        """Two or three arrays of one type."""
        known = [each for each in self.vectors() if "?" not in each.shape]
        if not known:
            return None
        first = self.rng.choice(known)
        same = [each for each in known if (each.dtype, each.shape) == (first.dtype, first.shape)]
        return [first, *(self.rng.choice(same) for _ in range(self.rng.choice((1, 1, 2))))], first

    def listed(self) -> bool:
        """A list of arrays."""
        found = self.items()
        if found is None:
            return False
        arrays, first = found
        name, rng = self.name("l"), self.rng
        texts = [each.name for each in arrays]
        own = all(each.own for each in arrays)
        if self.chance(0.3):
            texts[-1] = rng.choice((f"{texts[-1]}.copy()", f"{texts[-1]}[::-1]"))
        text = f"[{', '.join(texts)}]"
        if self.chance(0.2):
            text = rng.choice(
                (f"[{first.name}] * {len(texts)}", f"[np.zeros_like({first.name})] * {len(texts)}")
            )
        if self.chance(0.15):
            text = f"[{first.name} + j for j in range({len(texts)})]"
        if self.chance(0.1):
            text = f"list({text})"
        keys = [str(number) for number in range(len(texts))]
        self.scope.piles.append(Pile(name, first.dtype, first.shape, keys, own))
        return self.line(f"{name} = {text}")

    def dict_of(self) -> bool:
        """A dict of arrays."""
        found = self.items()
        if found is None:
            return False
        arrays, first = found
        name = self.name("d")
        keys = [f'"{key}"' for key in "uvw"[: len(arrays)]]
        text = ", ".join(f"{key}: {each.name}" for key, each in zip(keys, arrays, strict=True))
        own = all(each.own for each in arrays)
        self.scope.piles.append(Pile(name, first.dtype, first.shape, keys, own))
        return self.line(f"{name} = {{{text}}}")

    def changed(self) -> bool:
        """A change of a list or a dict, or of an array in it."""
        piles = [each for each in self.scope.piles if each.own or self.chance(self.daring)]
        if not piles:
            return self.listed()
        pile, rng = self.rng.choice(piles), self.rng
        name, key = pile.name, self.rng.choice(pile.keys)
        item = Array(f"{name}[{key}]", pile.dtype, pile.shape)
        value = self.bounded(pile.dtype, pile.shape)
        place, shape = self.place(item)
        options = [f"{place} = {self.stored(pile.dtype, shape)}"] * 3
        options += [f"{place} += {self.stored(pile.dtype, shape)}", f"{name}[{key}] += {value}"]
        options += [f"{name}[{key}] = {value}", f"{name}[{key}].fill({self.literal(pile.dtype)})"]
        kept = [f"{name}[{one}]" for one in pile.keys]
        options += [f"{kept[0]}, {kept[-1]} = {kept[-1]}, {kept[0]}", f"{kept[0]} = {kept[-1]}"]
        if not self.nested:
            if '"' in key:
                new = '"z"'
                more = [f'{name}["z"] = {value}', f"{name}.update(z={value})"]
                more += [f'{name}.setdefault("z", {value})', f'{name} = {{**{name}, "z": {value}}}']
            else:
                new = str(len(pile.keys))
                more = [
                    *[f"{name}.append({value})"] * 2,
                    f"{name} += [{value}]",
                    f"{name}.extend([{value}])",
                ]
                more += [f"{name}.insert(0, {value})", f"{name} = {name} + [{value}]"]
            if self.chance(0.1) and len(pile.keys) > 1:
                taken = pile.keys.pop()
                return self.line(
                    rng.choice((f"{name}.pop({taken})[:1] = 0", f"del {name}[{taken}]"))
                )
            if self.chance(0.5):
                pile.keys = list(dict.fromkeys([*pile.keys, new]))
                return self.line(rng.choice(more))
        elif self.chance(0.1) and '"' not in key:
            return self.line(f"{name}.append({value})")  # its length is no longer known
        if '"' not in key:
            options += [f"{name}.reverse()", f"{name}[:] = {name}[::-1]"]
        return self.line(rng.choice(options))

    def walked(self) -> bool:
        """A loop over a list, a dict or a tuple of arrays."""
        found = self.items()
        if found is None or self.nested > 2:
            return False
        arrays, first = found
        heads: list[tuple[str, Array]] = []
        v = self.name("r")
        text = ", ".join(each.name for each in arrays)
        own = all(each.own for each in arrays)
        heads.append((f"{v} in ({text})", Array(v, first.dtype, first.shape, own)))
        heads.append((f"{v} in [{text}]", Array(v, first.dtype, first.shape, own)))
        for pile in self.scope.piles:
            item = Array(v, pile.dtype, pile.shape, pile.own)
            if '"' in pile.keys[0]:
                heads += [
                    (f"{v} in {pile.name}.values()", item),
                    (f"_, {v} in {pile.name}.items()", item),
                ]
            else:
                heads += [
                    (f"{v} in {pile.name}", item),
                    (f"_, {v} in enumerate({pile.name})", item),
                ]
                heads += [(f"{v} in reversed({pile.name})", item)] * 2
        head, item = self.rng.choice(heads)
        self.line(f"for {head}:")
        return self.looped(item)

    def unpacked(self) -> bool:
        """Names for the rows of a matrix, or for the items of a list or a tuple."""
        rng = self.rng
        piles = [each for each in self.scope.piles if '"' not in each.keys[0]]
        if piles and self.chance(0.5):
            pile = rng.choice(piles)
            names = [self.define(pile.dtype, pile.shape, pile.own) for _ in pile.keys]
            return self.line(f"{', '.join(names)}, = {pile.name}")
        found = self.items()
        if found is None:
            return False
        arrays, first = found
        texts = [each.name for each in arrays]
        own = all(each.own for each in arrays)
        names = [self.define(first.dtype, first.shape, own) for _ in texts]
        texts = [rng.choice((text, text, f"{text}.copy()", f"{text}[::-1]")) for text in texts]
        if len(names) == 2 and self.chance(0.2):
            return self.line(
                f"({names[0]}, *_), {names[1]} = [{texts[0]}, {texts[-1]}], {texts[1]}"
            )
        return self.line(f"{', '.join(names)} = {', '.join(texts)}")

    # Functions.

    def helper(self) -> None:
        """A function of the module, of a vector and a number."""
        outer = self.scope, self.lines, self.enabled, self.depth, self.leaves, self.left
        name, size = self.name("f"), "len(z)"
        self.scope = Scope([Array("z", "f64", (size,)), Array("v", "f64", ())])
        self.lines, self.depth, self.left = [], 1, 0
        basic = [self.store, self.in_place, self.method, self.number]
        some = [self.rebind, self.alias, self.view, self.fresh]
        some += [] if self.straight else [self.branch, self.counted]
        self.enabled = basic + [each for each in some if self.chance(0.3)]
        stores, kernel = self.chance(0.65), self.chance(0.15)
        if kernel:  # which returns what is new
            self.line("z = z.copy()")
        if stores:
            self.statements(self.rng.choice((1, 1, 2)))
        kind, text = self.rng.choice(RESULTS)
        if kernel and kind != "number":
            kind, text = "new", self.rng.choice(("z * 1.0", "z + v"))
        if kind != "none":
            if not self.straight and self.chance(0.3):
                self.lines += EARLIER.get(kind, ())
            self.line(f"return {text}")
        elif not stores:
            self.line("z += v")
            stores = True
        head = f"def {name}(z, {self.rng.choice(('v', 'v', 'v=2.0'))}):\n"
        if kernel:
            head = f'@psc.kernel\ndef {name}(z: f64["k"], v: f64):\n'
        self.parts.append(head + "\n".join(self.lines))
        self.scope, self.lines, self.enabled, self.depth, self.leaves, self.left = outer
        self.scope.routines.append(Routine(name, kind, stores and not kernel))

    def closure(self) -> bool:
        """A function in the function, which stores into what is around it."""
        of = self.pick([each for each in self.vectors(1) if each.dtype == "f64"])
        if of is None or self.nested > 1 or "?" in of.shape:
            return False
        name = self.name("f")
        self.line(f"def {name}(z, v):")
        outer = self.leaves, self.loops, self.locked, self.nested
        around, self.leaves, self.loops = self.scope, None, 0
        self.scope = self.scope.copy()
        self.locked |= frozenset(each.name for each in self.scope.arrays)
        kinds = [("none", "")] * 2 + [
            ("number", f"{of.name}[0]"),
            ("number", f"{of.name}.sum() * v % 7"),
        ]
        kinds += [("same", "z"), ("new", f"{of.name} + v"), ("captured", of.name), ("number", "v")]
        kind, text = self.rng.choice(kinds)
        self.depth += 1
        self.nested += 1
        place, shape = self.place(of)
        sign = self.rng.choice(("=", "=", "+="))
        number = not shape or self.chance(0.6)
        self.line(f"{place} {sign} {'v' if number else self.stored('f64', shape)}")
        if self.chance(0.3):
            self.statements(1)
        if kind != "none":
            self.line(f"return {text}")
        self.depth -= 1
        self.scope = around
        self.leaves, self.loops, self.locked, self.nested = outer
        if kind == "captured" or (kind == "new" and of.shape != ("n",)):
            kind = "none"
        self.scope.routines.append(Routine(name, kind, False, of))
        return True

    def call(self, *kinds: str) -> tuple[str, Array, Routine] | None:
        """A call of a function with a result of one of some kinds, and its argument."""
        routines = [each for each in self.scope.routines if not kinds or each.result in kinds]
        if not routines:
            return None
        routine = self.rng.choice(routines)
        known = [each for each in self.vectors(1) if each.dtype == "f64" and "?" not in each.shape]
        known = [each for each in known if self.at_least(each.shape[0]) >= min(self.least, 1)]
        known = [each for each in known if self.at_least(each.shape[0]) >= self.least]
        of = self.pick(known, own=routine.stores)
        if of is None:
            return None
        part = self.rng.choice(("", "", "", "[:]", "[::-1]"))
        return f"{routine.name}({of.name}{part}, {self.bounded('f64', (), 1)})", of, routine

    def called(self) -> bool:
        """A call that stands alone, or whose result has a name."""
        found = self.call()
        if found is None:
            return False
        text, of, routine = found
        if routine.result == "none" or self.chance(0.3):
            return self.line(text)
        if routine.result == "number":
            return self.line(f"{self.define('f64', (), letters='rst')} = {text}")
        if routine.result == "same" and of.own and self.chance(0.3):
            return self.line(f"{text}[0] = {self.literal('f64')}")
        shape = of.shape if routine.captures is None or routine.result == "same" else ("n",)
        name = self.define("f64", shape, of.own or routine.result == "new")
        return self.line(f"{name} = {text}")

    def ordered(self) -> bool:
        """An expression or a store, of which a part changes what another part reads."""
        found = self.call("number")
        if found is None:
            return self.called()
        text, of, routine = found
        y = of if routine.captures is None or self.chance(0.4) else routine.captures
        if not y.own and not self.chance(self.daring):
            return False
        name, index, new = y.name, self.index(y.shape[0]), self.name("yz")
        kind = self.rng.choice(("stores", "arrays", "numbers"))
        orders = [each for each in ORDERS[kind] if not self.straight or "if" not in each]
        order = self.rng.choice(orders).format(y=name, i=index, f=text)
        if kind == "stores":
            return self.line(order)
        self.scope.arrays.append(Array(new, "f64", y.shape if kind == "arrays" else ()))
        return self.line(f"{new} = {order}")

    def delayed(self) -> bool:
        """Something that looks at arrays later than it is written."""
        found = self.items()
        if found is None:
            return False
        arrays, first = found
        if not all(self.at_least(size) for size in first.shape) or not first.own:
            return False
        name, value = self.name("g"), self.name("rs")
        at = ", ".join("0" for _ in first.shape)
        text = f"[{', '.join(each.name for each in arrays)}]"
        y = first.name
        lazy = [f"({v}[{at}] for {v} in {text})" for v in "e"]
        lazy += [
            f"map(lambda e: e[{at}] + {y}[{at}], {text})",
            f"(e.sum() for e in {text} if e is not None)",
        ]
        lazy += [f"({y}[{at}] + j for j in range(3))"]
        store = f"{y}[{at}] = {self.bounded(first.dtype, (), 1)}"
        use = self.rng.choice(
            (f"sum({name})", f"max({name})", f"sum(list({name}))", f"next({name})")
        )
        pick = self.rng.choice(lazy)
        if self.chance(0.3):
            test = self.rng.choice(("any", "all"))
            self.scope.arrays.append(Array(value, "bool_", ()))
            return self.line(f"{value} = {test}(e[{at}] > {self.literal('f64')} for e in {text})")
        self.line(f"{name} = {pick}")
        self.line(store)
        self.scope.arrays.append(Array(value, first.dtype, ()))
        return self.line(f"{value} = {use}")

    def bound_method(self) -> bool:
        """A method, or a function with an argument given, used after a store."""
        of = self.pick([each for each in self.vectors() if "?" not in each.shape])
        if of is None or not all(self.at_least(size) for size in of.shape):
            return False
        name, y = self.name("g"), of.name
        at = ", ".join("0" for _ in of.shape)
        made = [f"{y}.sum", f"functools.partial(np.sum, {y})", f"lambda: {y}[{at}] + 1"]
        made += [f"lambda e={y}: e.sum()", f"(lambda e: lambda: e.sum())({y})"]
        self.line(f"{name} = {self.rng.choice(made)}")
        self.line(f"{y}[{at}] = {self.bounded(of.dtype, (), 1)}")
        if self.chance(0.3):
            self.rebind()
        return self.line(f"{self.define(of.dtype, (), letters='rs')} = {name}()")

    def recorded(self) -> bool:
        """A record that holds an array which is written afterwards."""
        of = self.pick(
            [each for each in self.vectors(1) if each.dtype == "f64" and each.shape == ("n",)]
        )
        if of is None or self.nested or not self.least:
            return False
        if not any("class Pair" in part for part in self.parts):
            self.parts.append('class Pair(psc.Record):\n    left: f64["n"]\n    right: f64["n"]')
        name, y = self.name("p"), of.name
        self.line(f"{name} = Pair({y}, {self.rng.choice((y, f'{y} + 1', f'{y}[::-1]'))})")
        self.line(
            self.rng.choice((f"{y}[0] = 5.0", f"{y} += 1.0", f"{name}.left[0] = 7.0", "pass"))
        )
        other = self.rng.choice(("left", "right"))
        return self.line(f"{self.define('f64', ('n',), False)} = {name}.{other}")

    def combined(self) -> bool:
        """A combinator over a function that reads or writes an array around it."""
        of = self.pick(
            [each for each in self.vectors(1) if each.dtype == "f64" and each.shape == ("n",)]
        )
        if of is None or self.nested > 1 or not self.least:
            return False
        f, y, rng = self.name("f"), of.name, self.rng
        new = self.name("yz")
        if self.chance(0.4):
            self.line(f"{y}[0] = {self.literal('f64')}")
        self.line(f"def {f}({'e, v' if (scan := self.chance(0.4)) else 'v'}):")
        inner = [f"{y}[0] += 1.0", f"{y}[0] = v"] if self.chance(0.25) else []
        inner += [
            "t = x.copy()\n{}t[0] = v",
            f"t = {y} * 1.0\n{{}}t += v",
            "t = np.zeros(3)\n{}t[1:] += v",
        ]
        space = "    " * (self.depth + 1)
        self.lines.append(space + rng.choice(inner).replace("{}", space))
        local = "t = " in self.lines[-1]
        value = rng.choice(
            (f"{y}[-1] + v", f"{y}.sum() * 1.0", *(["t.sum()"] * 3 if local else []))
        )
        self.lines.append(f"{space}return {f'e + {value}, v' if scan else value}")
        if self.chance(0.4):
            self.line(f"{y}[-1] = {self.literal('f64')}")
        if scan:
            self.line(f"{new}, _ = psc.scan({f}, x[0] * 1.0, x)")
            self.scope.arrays.append(Array(new, "f64", ()))
        else:
            self.line(f"{new} = psc.{rng.choice(('vmap', 'vmap'))}({f})(x)")
            self.scope.arrays.append(Array(new, "f64", ("n",)))
        if self.chance(0.5):
            self.line(f"{y}[0] = {self.literal('f64')}")
        return True
