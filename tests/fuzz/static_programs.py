"""Random programs of the static language: a module, and a function `main(n, m)` of sizes.

It computes with values of Python's alone.  Expressions are made from templates: `<int>` stands for
an expression of that type, and `<int q w>` for one in which `q` and `w` are integers as well.  What
is generated runs most of the time; what it means is Python's business.
"""

from __future__ import annotations

import ast
import copy
import random
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pscdsl.typing.python_containers import is_sequence
from tests.support.program_writer import ProgramWriter

CONSTANTS: dict[str, Sequence[str]] = {
    "int": ("0", "1", "2", "3", "5", "7", "10", "-1", "-2"),
    "float": ("0.5", "1.0", "2.0", "-1.5", "3.0", "0.0", "math.nan", "math.inf"),
    "bool": ("True", "False"),
    "str": ("'a'", "'bc'", "''", "'3'", "'True'", "'a,b'", "'{}'", "'%s'"),
    "tuple": ("()", "(1,)", "(2, 1)", "(0, 3, 1)"),
    "list": ("[]", "[1]", "[2, 1]", "[0, 3, 1]"),
    "dict": ("{}", "{'a': 1}", "{'b': 2, 'a': 0}"),
    "set": ("set()", "{1}", "{2, 1}", "frozenset((3, 0))"),
}
TYPES = ("int", "int", "int", "float", "bool", "bool", "str", "tuple", "list", "dict", "set")
TEMPLATES = {
    kind: [each.strip() for each in text.strip().split(";")]
    for kind, text in {
        "number": """
            <int>; <int>; <float>; <bool>
        """,
        "seq": """
            <tuple>; <tuple>; <list>; range(3); range(<int>)
        """,
        "any": """
            <int>; <int>; <float>; <bool>; <str>; <tuple>; None; <list>
        """,
        "key": """
            <int>; <float>; <bool>; <str>; <tuple>
        """,
        "int": """
            (<int> + <int>); (<int> - <int>); (<int> * <int>); (<int> + <int>);
            (<int> - <int>); (<int> * <int>); (<int> & <int>); (<int> | <int>);
            (<int> ^ <int>); (<int> // <int>); (<int> % 3); (<int> // 2); (<int> ** 2);
            (2 ** <int>); -<int>; +<int>; ~<int>; (<int> << 1); (<int> >> 1);
            (<bool> + <int>); len(<seq>); len(<str>); len(<dict>); len(<set>);
            len({<key>, <key>}); sum(<seq>); sum(<seq>, <int>); sum([<bool>, <bool>]);
            math.prod(<seq>); max(<int>, <int>); min(<int>, <int>);
            max(<seq>, default=<int>); min((<int>, <int>), key=lambda q: <int q>);
            max(<seq>, key=lambda q: q % 3); int(<number>); abs(<int>); round(<float>);
            int(<str>); math.isqrt(<int>); math.ceil(<int> / 2); math.floor(<int> / 3);
            int(<int> / 2); math.gcd(<int>, 4); <seq>[<int>]; <seq>.count(<number>);
            <tuple>.index(<int>); <str>.find(<str>); <dict>.get(<str>, <int>); <dict>[<str>];
            {<key>: 1, <key>: 2}.get(<key>, 5); divmod(<int>, 3)[0]; divmod(<int>, <int>)[1];
            pow(<int>, 2, 5); pow(<int>, 2); sum(<int q> for q in <seq>);
            sum(map(lambda q: <int q>, <seq>)); sum(q * w for q, w in zip(<seq>, <seq>));
            sum(q for q in <seq> if <bool q>); len(list(filter(lambda q: <bool q>, <seq>)));
            len([q for q in <seq> for w in <seq>]);
            sum(q * w for q, w in enumerate(<seq>, <int>)); (lambda q: <int q>)(<int>);
            functools.reduce(lambda q, w: <int q w>, <seq>, <int>);
            operator.add(<int>, <int>); (lambda q, w=<int>: <int q w>)(<int>);
            (lambda *q, **w: len(q))(*<seq>); (<int> and <int>); (<int> or <int>);
            (<int> if <bool> else <int>); len(f"{<any>}");
            functools.partial(lambda q, w: <int q w>, <int>)(<int>); len(<set> & <set>);
            len(str(<any>)); len(repr(<any>)); next(iter(<seq>))
        """,
        "float": """
            (<number> + <float>); (<number> - <float>); (<number> * <float>); (<number> / 2);
            (<int> / <int>); float(<number>); max(<float>, <number>); sum(<seq>, <float>);
            abs(<float>); round(<float>, 1); (<float> or <float>); math.sqrt(<number>);
            float(<int> // 2); float(<str>); min(<float>, <float>); math.fsum(<seq>);
            math.floor(<float>) / 2; (<float> // <float>); (<float> % 2);
            (<float> if <bool> else <float>); sum([<float>, <float>]);
            math.hypot(<float>, 1)
        """,
        "bool": """
            (<number> < <number>); (<number> <= <number>); (<number> > <number>);
            (<number> >= <number>); (<number> == <number>); (<number> != <number>);
            (<number> == <number>); (<number> != <number>);
            (<number> < <number> <= <number>); (<int> == <int> != <int>); (<any> == <any>);
            (<any> != <any>); (not <any>); (<bool> and <bool>); (<bool> or <bool>);
            (<number> in <seq>); (<any> in (<any>, <any>)); (<str> in <str>);
            (<key> in <set>); (<key> not in {<key>, <key>}); (<key> in {<key>: 1});
            (<number> in range(<int>)); bool(<any>); isinstance(<any>, int);
            isinstance(<any>, (str, bool)); any(<bool q> for q in <seq>);
            all(<bool q> for q in <seq>); any(<seq>); all(<seq>); (<bool> is True);
            (None is <any>); (<any> is not None); (<seq> == <seq>); (<dict> == <dict>);
            (<set> <= <set>); <str>.startswith(<str>); (<tuple> < <tuple>); (<set> == <set>);
            callable(<any>); (<tuple> in [<tuple>, <tuple>]); math.isnan(<float>);
            isinstance(<any>, float); (<str> < <str>); (<bool> ^ <bool>); (<bool> & <bool>)
        """,
        "str": """
            (<str> + <str>); str(<any>); repr(<any>); f"{<any>}"; f"{<number>:>4}";
            '{}-{}'.format(<any>, <any>); '{a}'.format(a=<any>); (<str> * 2);
            '%s' % (<any>,); '%d' % <int>; <str>.upper(); <str>.strip();
            ','.join(str(q) for q in <seq>); ','.join(<dict>); (<str> or <str>);
            <str>.replace(<str>, 'z'); <str>[:<int>]; <str>[::-1]; ('x' if <any> else 'y');
            f"{<any>!r}"; format(<number>, '4'); ''.join(<set>); str(<set>); <str>.title();
            <str> % <int>; sorted(<str>)[0]
        """,
        "tuple": """
            (<int>, <int>); (<tuple> + <tuple>); (*<seq>, <int>);
            tuple(<int q> for q in <seq>); tuple(<list>); <tuple>[<int>:]; <tuple>[::-1];
            tuple(reversed(<tuple>)); tuple(range(<int>)); (<tuple> * 2);
            tuple(sorted(<seq>)); tuple(<dict>.values());
            tuple(sorted(<seq>, key=lambda q: <int q>));
            tuple(q for q, w in zip(<seq>, <seq>)); tuple(map(lambda q: <int q>, <seq>));
            (<tuple> or <tuple>); tuple(<set>); tuple(map(abs, <seq>)); tuple(sorted(<set>));
            (<tuple> if <bool> else <tuple>)
        """,
        "list": """
            [<int>, <int>]; [<int q> for q in <seq>]; [q for q in <seq> if <bool q>];
            list(<tuple>); (<list> + <list>); sorted(<seq>, reverse=<bool>);
            [*<seq>, *<seq>]; [<int q w> for q in <seq> for w in <seq>]; <list>[<int>:<int>];
            list(<dict>.values()); <list>.copy();
            list(filter(None, <seq>))
        """,
        "dict": """
            {'a': <int>, 'b': <int>}; {**<dict>, 'c': <int>}; dict(<dict>, z=<int>);
            {str(q): q for q in <seq>}; (<dict> | <dict>); dict(zip(('a', 'b'), <seq>));
            dict([('a', <int>)]); {<str>: <int>, <str>: <int>}; <dict>.copy()
        """,
        "set": """
            {<int>, <int>}; set(<seq>); {<int q> for q in <seq>}; (<set> | <set>);
            (<set> - <set>); frozenset(<tuple>); <set>.union(<seq>); {*<seq>, 1}
        """,
    }.items()
}
"""Expressions of each type."""
NEWER = {
    (3, 14): {
        "int": """
            functools.partial(lambda q, w: <int q w>, functools.Placeholder, <int>)(<int>);
            functools.partial(lambda q, w=2, *k: <int q w>, functools.Placeholder, <int>)(*<seq>);
            sum(map(lambda q, w: <int q w>, <seq>, <seq>, strict=<bool>));
            functools.reduce(lambda q, w: <int q w>, <seq>, initial=<int>);
            len(t"{<any>}".strings)
        """,
        "float": "(<float> * 1j).imag; (<number> - (<float> * 1j)).imag; (<float> / (1 + 1j)).real",
    },
    (3, 15): {
        "int": "sum((*q for q in (<seq>, <seq>))); len([*q for q in <list> for w in <seq>])",
        "float": "math.fmax(<float>, <number>); math.fmin(<number>, <float>)",
        "bool": "math.signbit(<number>); math.isnormal(<number>); math.issubnormal(<float>)",
        "tuple": "(*[*q for q in (<seq>, <seq>)], 1); tuple((*(q, <int q>) for q in <seq>))",
        "list": "[*q for q in (<seq>, <seq>)]; [*(q, <int q>) for q in <seq> if <bool q>]",
        "dict": "{**q for q in (<dict>, <dict>)}; {**{str(q): <int q>} for q in <seq>}",
        "set": "{*q for q in (<seq>, <seq>)}; {*(q, <int q>) for q in <seq>}",
    },
}
"""Expressions that older versions of Python do not have."""
for _since, _more in NEWER.items():
    if sys.version_info >= _since:
        for _kind, _text in _more.items():
            TEMPLATES[_kind].extend(each.strip() for each in _text.strip().split(";"))
METHODS = (
    "def g(self): return <int>",
    "def g(self): return self.u + <int>",
    "def g(self, k=<int>): return k + self.u",
    "def g(self): return self.h(<int>)",
    "@property\ndef p(self): return self.u * 2",
    "@staticmethod\ndef s(k): return k + <int>",
    "@classmethod\ndef c(cls): return cls.r + <int>",
    "@twice\ndef g(self): return <int>",
    "@functools.cached_property\ndef p(self): return self.u + 1",
    "def __post_init__(self): assert self.u is not None",
    "def __len__(self): return <int>",
    "def __eq__(self, other): return True",
    "def __bool__(self): return False",
    "def h(self, k): return k - <int>",
    "g = lambda self: self.u",
    "g = helper",
)
CLASS_CONSTANTS = (
    *("r = <int>", "r = <int>", "r: ClassVar[int] = <int>", "r, z = 1, <int>", "r = z = <int>"),
    *("r = 1; r += <int>", "if <bool>: r = <int>", "for r in (1, 2): pass", "r = 1; z = r + 1"),
)


class Maker(ProgramWriter):
    """Makes one program."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, depth=0)
        self.scopes: list[dict[str, str]] = [{}]
        self.calls: dict[str, list[str]] = {}
        """Templates of what the module defines, by the type of what they give."""

    def names(self, kind: str) -> list[str]:
        """The names in sight of a type."""
        return [name for scope in self.scopes for name, each in scope.items() if each == kind]

    def expression(self, kind: str, depth: int = 2) -> str:
        """An expression of a type."""
        rng = self.rng
        known = self.names(kind)
        if rng.random() < 0.6:  # most of what is not closed is refused
            known = [each for each in known if each not in ("n", "m")]
        if kind in CONSTANTS:
            if depth <= 0 or rng.random() < 0.15:
                leaf = known and rng.random() < 0.8
                return rng.choice(known) if leaf else rng.choice(CONSTANTS[kind])
            if known and rng.random() < 0.2:
                return rng.choice(known)
        own = self.calls.get(kind)
        template = rng.choice(own if own and rng.random() < 0.2 else TEMPLATES[kind])
        return self.filled(template, depth if kind not in CONSTANTS else depth - 1)

    def filled(self, template: str, depth: int) -> str:
        """A template with expressions in its places."""

        def fill(found: re.Match[str]) -> str:
            kind, *names = found[1].split()
            self.scopes.append(dict.fromkeys(names, "int"))
            made = self.expression(kind, depth)
            self.scopes.pop()
            return made

        return re.sub(r"<(\w[\w ]*)>", fill, template)

    def within(self, text: str) -> None:
        """Write what stands in a class."""
        with self.inside():
            self.line(text)

    def statement(self, loops: int) -> None:
        """A statement of a function."""
        rng, scope, kind = self.rng, self.scopes[-1], self.rng.choice(TYPES)
        own = [name for name, each in scope.items() if each == kind and name not in ("n", "m")]
        match rng.choice((*range(14), *range(10))):
            case 0 | 1 | 2 | 3:
                name = rng.choice(own) if own and rng.random() < 0.3 else self.name("v")
                self.line(f"{name} = {self.expression(kind)}")
                scope[name] = kind
            case 4 if own:
                sign = "|" if kind in ("dict", "set") else self.one("+", "+", "-", "*", "//")
                self.line(f"{rng.choice(own)} {sign}= {self.expression(kind, 2)}")
            case 5:
                a, b = self.name("v"), self.name("v")
                self.line(self.filled(f"{a}, *{b} = <seq>", 2))
                scope[a], scope[b] = "int", "list"
            case 6 | 7 if self.depth < 3:
                self.line(self.filled("if <any>:", 2))
                self.block(2, loops)
                if rng.random() < 0.5:
                    self.line("else:")
                    self.block(2, loops)
            case 8 | 9 if self.depth < 3:
                name = self.name("i")
                self.line(self.filled(f"for {name} in <seq>:", 2))
                scope[name] = "int"
                self.block(2, loops + 1)
                if rng.random() < 0.3:
                    self.line("else:")
                    self.block(1, loops)
            case 10:
                name, given = self.name("f"), self.name("p")
                self.line(self.filled(f"def {name}({given}, k=<int>):", 2))
                self.scopes.append({given: "int", "k": "int"})
                self.line(f"    return {self.expression('int', 2)}")
                self.scopes.pop()
                made = self.name("v")
                if rng.random() < 0.5 and own:
                    self.line(f"{rng.choice(own)} = {self.expression(kind, 1)}")
                self.line(self.filled(f"{made} = {name}(<int>)", 1))
                scope[made] = "int"
            case 11:
                lazy, made = self.name("z"), self.name("v")
                template = self.one(
                    f"{lazy} = zip(<seq>, <seq>)\n{made} = [q + w for q, w in {lazy}]",
                    f"{lazy} = map(lambda q: <int q>, <seq>)\n{made} = list({lazy})",
                    f"{lazy} = (<int q> for q in <seq>)\n{made} = [*{lazy}]",
                    f"{lazy} = map(abs, <seq>)\n{made} = list({lazy})",
                    f"{lazy} = reversed(<list>)\n{made} = list({lazy}) + list({lazy})",
                )
                self.line(self.filled(template, 1))
                scope[made] = "list"
            case 12:
                if loops and rng.random() < 0.5:
                    self.line(self.filled(f"if <bool>: {self.one('break', 'continue')}", 1))
                else:
                    test = self.one("n > 0", "m != 2", "<any> == <any>", "<bool>", "n % 2 == 0")
                    self.line(self.filled(f'assert {test}, f"{{<any>}}"', 1))
            case 13 if own and rng.random() < 0.3:
                name = rng.choice(own)
                self.line(f"del {name}")
                del scope[name]
            case _:
                name = self.name("w")
                template = self.one(f"[{name} := q for q in (1, <int>)]", f"({name} := <int>) < 3")
                self.line(self.filled(template, 1))
                scope[name] = "int"

    def block(self, most: int, loops: int) -> None:
        """Statements; what they bind first may be unbound behind them."""
        before = dict(self.scopes[-1])
        with self.inside():
            for _ in range(self.rng.randint(1, most)):
                self.statement(loops)
            if self.rng.random() < 0.7:
                self.scopes[-1].clear()
                self.scopes[-1].update(before)
            self.line("pass")

    def constant(self) -> None:
        """A name of the module, which now and then is bound again."""
        kind, name = self.rng.choice(TYPES), self.name("G")
        self.line(f"{name} = {self.expression(kind, 1)}")
        match self.rng.randrange(30):
            case 0:
                other = self.name("G")
                self.line(f"{other} = {name}\n{name} = {self.expression(kind, 1)}")
                self.scopes[0][other] = kind
            case 1:
                self.line(self.filled(f"def keep(q=({name} := <{kind}>)): return q", 1))
            case 2:
                self.line(self.filled(f"if <bool>: {name} = <{kind}>", 1))
            case 3:
                self.line(f"try: raise ValueError\nexcept ValueError as {name}: pass")
            case 4:
                self.line(self.filled(f"for {name} in (<{kind}>,): pass", 1))
            case _:
                pass
        self.scopes[0][name] = kind

    def function(self) -> None:
        """A function of the module."""
        name, kind = self.name("h"), self.rng.choice(TYPES)
        parameters = [self.name("a") for _ in range(self.rng.randint(1, 2))]
        self.line(f"def {name}({', '.join(parameters)}, d={self.expression('int', 1)}):")
        self.scopes.append({**dict.fromkeys(parameters, "int"), "d": "int"})
        self.block(3, 0)
        self.line(f"    return {self.expression(kind, 2)}")
        self.scopes.pop()
        given = ", ".join("<int>" for _ in parameters)
        keyword = self.one(", d=<int>", "", "", ", 1")
        self.calls.setdefault(kind, []).append(f"{name}({given}{keyword})")

    def enumeration(self) -> None:
        """An enumeration."""
        name = self.name("E")
        base = self.one("enum.Enum", "enum.Enum", "enum.IntEnum", "enum.Flag")
        self.line(f"class {name}({base}):")
        self.within(self.one("A = 1\nB = 2", "A = 1\nB = 1", "A = enum.auto()\nB = enum.auto()"))
        if self.rng.random() < 0.3:
            self.within(self.one("def w(self): return 1", "@property\ndef value(self): return 7"))
        for kind, template in (
            ("int", f"{name}.A.value"),
            ("bool", f"({name}.A is {name}.B)"),
            ("bool", f"({name}['A'] == {name}.B)"),
            ("bool", f"({name}.A in ({name}.B, <any>))"),
            ("bool", f"({name}.A == <any>)"),
            ("int", f"{{{name}.A: 1, {name}.B: 2}}[{name}.B]"),
            ("str", f"{name}.B.name"),
            ("str", f"str({name}.A)"),
            ("int", f"({name}.A + 1)"),
        ):
            self.calls.setdefault(kind, []).append(template)

    def record(self, parents: list[str]) -> None:
        """A class with fields, or one that is a place for functions and constants."""
        name, rng = self.name("C"), self.rng
        head = self.one(
            f"class {name}(psc.Record):",
            f"@dataclasses.dataclass(frozen=True)\nclass {name}:",
            f"class {name}(NamedTuple):",
            f"class {name}:",
        )
        if parents and rng.random() < 0.3:
            decorated = self.one("", "@dataclasses.dataclass(frozen=True)\n")
            head = f"{decorated}class {name}({rng.choice(parents)}):"
        self.line(head)
        fields = self.one(
            "u: int",
            "u: int\nv: int = <int>",
            "u: int = <int>\nv: int = <int>",
            "u: int\nv: tuple = dataclasses.field(default=(1, 2))",
            "v: int = dataclasses.field(kw_only=True, default=3)\nu: int = 1",
            "u: int\nv: tuple = dataclasses.field(default_factory=tuple)",
            "v: int",
        )
        self.within(self.filled(fields, 1))
        for _ in range(rng.randint(0, 2)):
            first = 3 if rng.random() < 0.8 else len(CLASS_CONSTANTS)
            self.within(self.filled(rng.choice(CLASS_CONSTANTS[:first]), 1))
        for _ in range(rng.randint(0, 2)):
            first = 7 if rng.random() < 0.8 else len(METHODS)
            self.within(self.filled(rng.choice(METHODS[:first]), 1))
        parents.append(name)
        made = self.one(f"{name}(<int>)", f"{name}(u=<int>)", f"{name}(<int>, <int>)")
        for kind, template in (
            *(("int", f"{made}.{each}") for each in ("u", "v", "g()", "p", "r", "u")),
            *(("int", f"{name}.{each}") for each in ("r", "s(<int>)", "c()")),
            *(("bool", text) for text in (f"({made} == <any>)", f"isinstance({made}, {name})")),
            ("int", f"dataclasses.replace({made}, u=<int>).u"),
            ("int", f"{made}._replace(u=<int>).u"),
            ("int", f"{made}.replace(u=<int>).u"),
            ("int", f"{made}[0]"),
            ("int", f"len({made})"),
            ("bool", f"(not {made})"),
            ("int", f"getattr({made}, 'u', 3)"),
            ("dict", f"dataclasses.asdict({made})"),
        ):
            self.calls.setdefault(kind, []).append(template)


HEAD = """import dataclasses, enum, functools, math, operator
from typing import ClassVar, NamedTuple
import pscdsl as psc
def twice(f): return lambda *a: 2 * f(*a)
def helper(*a): return len(a)
"""


@dataclass(frozen=True)
class StaticProgram:
    """A module with `main(n, m)`; what it imports from `other`, if it does."""

    text: str
    other: str | None = None


def generate(seed: int) -> StaticProgram:
    """The program of a seed."""
    maker = Maker(seed)
    rng, parents = maker.rng, list[str]()
    for _ in range(rng.randint(0, 4)):
        maker.constant()
    for _ in range(rng.choice((0, 1, 2))):
        rng.choice((maker.function, maker.function, maker.enumeration))()
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        maker.record(parents)
    other = None
    if rng.random() < 0.1:
        other = HEAD + "\n".join(maker.lines) + "\n"
        maker.lines = [rng.choice(("from other import *", "from other import *\nG0 = 1"))]
    maker.line("def main(n, m):")
    maker.scopes.append({"n": "int", "m": "int"})
    with maker.inside():
        for _ in range(rng.randint(1, 6)):
            maker.statement(0)
        local = [name for name in maker.scopes[-1] if name not in ("n", "m")]
        results = [*local[:5], maker.expression(rng.choice(TYPES))]
        maker.line(f"return ({', '.join(results)},)")
    return StaticProgram(HEAD + "\n".join(maker.lines) + "\n", other)


def mutant(program: StaticProgram, seed: int) -> StaticProgram | None:
    """A program with one thing changed; None if it cannot be written down again."""
    rng = random.Random(seed)
    tree = ast.parse(program.text)
    places: list[tuple[ast.AST, str, int | None]] = []
    parts: list[ast.expr] = []
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if is_sequence(value):
                places.extend((node, name, index) for index in range(len(value)))
            elif isinstance(value, ast.AST):
                places.append((node, name, None))
        if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            parts.append(node)
    for _ in range(20):
        node, name, index = rng.choice(places)
        value = getattr(node, name)
        old = value if index is None else value[index]
        if isinstance(old, ast.stmt) and index is not None:
            changed = copy.deepcopy(old)
            where = rng.randrange(len(value) + 1)
            value.insert(where, changed) if rng.random() < 0.5 else value.pop(index)
        elif isinstance(old, ast.expr) and isinstance(getattr(old, "ctx", ast.Load()), ast.Load):
            new = copy.deepcopy(rng.choice(parts))
            if index is None:
                setattr(node, name, new)
            else:
                value[index] = new
        elif isinstance(old, ast.operator | ast.cmpop | ast.boolop | ast.unaryop):
            kinds: list[Any] = type(old).__mro__[1].__subclasses__()
            new_operator = rng.choice(kinds)()
            if index is None:
                setattr(node, name, new_operator)
            else:
                value[index] = new_operator
        else:
            continue
        try:
            return StaticProgram(ast.unparse(ast.fix_missing_locations(tree)) + "\n", program.other)
        except (ValueError, TypeError, AttributeError, IndexError, RecursionError):
            return None
    return None
