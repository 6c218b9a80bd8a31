"""The list of uses of a captured value that neither write it nor give it away.

A use that is not on the list may write: nothing is followed.  Objects of the project's own classes
may receive the other operand of an operator, so that operands count only as long as no class has
such a method, or what stands on the other side is plain.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pscdsl._src.frontend.captures.resolution import COMPARISONS, Resolver, methods_of
from pscdsl._src.frontend.purity import DICT_METHODS, LIST_METHODS, SET_METHODS, Kind
from pscdsl._src.frontend.text.bindings import parameters, uses
from pscdsl._src.frontend.text.source import Source
from pscdsl.numpy import methods
from pscdsl.typing.diagnostics import Span


@dataclass(frozen=True)
class Harm:
    """Where something may write a captured value or bind its name anew, and by what."""

    span: Span
    by: str
    sure: bool = False
    """Whether a value is written there, and not only given to who may write it."""


_CHANGES = frozenset((*LIST_METHODS, *DICT_METHODS, *SET_METHODS, *methods.IN_PLACE))
"""Methods that change what they belong to."""
_READ_ATTRIBUTES = frozenset("shape ndim size dtype nbytes itemsize strides".split())
_VIEWS = frozenset("T mT real imag".split())
_REDUCTIONS = frozenset(
    "sum mean prod std var min max argmin argmax any all cumsum cumprod astype dot trace round "
    "searchsorted".split()
)
"""Methods of arrays whose second argument by position may be the memory of the result."""
_ARRAY_METHODS = _REDUCTIONS | frozenset("copy tolist tobytes item nonzero argsort".split())
_CONTAINER_METHODS = frozenset(
    "copy index count keys values items get issubset issuperset isdisjoint union intersection "
    "difference symmetric_difference".split()
)
_METHOD_KEYWORDS = frozenset("axis dtype keepdims ddof where initial order casting".split())
_BUILTINS = frozenset("len print float int bool complex str repr isinstance type abs round".split())
_TEXTS = frozenset("print str repr".split())
"""NumPy hands an array to a function of the user's (`override_repr`) where it makes its `repr`, and
so does a container that makes a text of its items."""
_CONTAINER_BUILTINS = _BUILTINS | frozenset(
    "list tuple dict set frozenset sorted sum min max any all".split()
)
_LOOPED = frozenset("builtins.enumerate builtins.zip builtins.reversed".split())
"""What may stand around a container in the head of a loop."""
_BUILTIN_KEYWORDS = {"print": frozenset("sep end flush".split()), "sorted": frozenset({"reverse"})}
_READERS: dict[int, frozenset[str]] = {
    1: frozenset(
        "exp log sqrt sin cos tan tanh abs absolute negative square sign floor ceil isnan isfinite "
        "isinf shape ndim size copy linalg.norm linalg.det linalg.inv linalg.eigvalsh "
        "array_str log1p expm1 exp2 log2 spacing".split()
    ),
    2: frozenset(
        "sum mean prod std var min max amin amax argmin argmax any all sort argsort cumsum unique "
        "median zeros_like ones_like empty_like add subtract multiply divide true_divide power "
        "maximum minimum dot matmul inner outer kron vdot count_nonzero array_equal stack "
        "linspace concatenate".split()
    ),
    3: frozenset("quantile percentile".split()),
    9: frozenset(
        "allclose isclose convolve full_like where interp "
        "testing.assert_allclose testing.assert_array_equal testing.assert_equal "
        "testing.assert_array_almost_equal".split()
    ),
}
"""Functions of NumPy that read their arguments, if they get no more than this by position."""
_READER_KEYWORDS = frozenset(
    "axis dtype keepdims ddof rtol atol equal_nan err_msg verbose decimal strict".split()
)
_SHOWN = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Delete)
_MOST_SHOWN = 60
_GET_OTHERS = ("__array_ufunc__", "__array_function__", "__array_priority__")


class Harmless:
    """Judges uses of one value of a kind."""

    def __init__(self, resolver: Resolver, kind: Kind, ndim: int | None = None) -> None:
        self._resolver = resolver
        self._array = kind is Kind.ARRAY
        self._flat = kind is Kind.FLAT
        self._ndim = ndim
        """Of an array, the number of its axes."""

    def harm(self, source: Source, node: ast.AST, *, whole: bool = True) -> Harm | None:
        """What may write the value that an expression has; None if the use is on the list.

        `whole`: the expression has the captured value itself, not a view of it.
        """
        if self._is_harmless(source, node, whole):
            return None
        shown = self._shown(source, node)
        by = self._by(source, node) if shown in (node, uses(source).parents.get(node)) else ""
        by = by or f"`{source.text_of(shown)}`"
        return Harm(source.span(shown), by, self._changes(source, node))

    def _changes(self, source: Source, node: ast.AST) -> bool:
        """Whether a use is a store into the value, or a method that changes it."""
        parents = uses(source).parents
        parent = parents.get(node)
        if isinstance(parent, ast.Subscript) and parent.value is node:
            stored = not isinstance(parent.ctx, ast.Load)
            return stored or (self._array and self._changes(source, parent))
        if not isinstance(parent, ast.Attribute):
            return False
        if parent.attr in _VIEWS:
            return self._changes(source, parent)
        call = parents.get(parent)
        return isinstance(call, ast.Call) and call.func is parent and parent.attr in _CHANGES

    def _by(self, source: Source, node: ast.AST) -> str:
        """Who gets a value, where the name alone does not say it; empty if its place does."""
        parents = uses(source).parents
        parent = parents.get(node)
        call = parents.get(parent) if isinstance(parent, ast.keyword) else parent
        if isinstance(call, ast.Call) and len(source.text_of(call)) > _MOST_SHOWN:
            function = source.text_of(call.func)
            return f"`{function}(…)`" if len(function) <= _MOST_SHOWN else "the function it goes to"
        if isinstance(parent, ast.For | ast.AsyncFor | ast.comprehension):
            return "the loop over it, which gets parts of it"
        if isinstance(parent, ast.arguments):
            return "calls of the function whose default it is"
        return "" if self._shown(source, node) is not node else "whoever gets it there"

    def _shown(self, source: Source, node: ast.AST) -> ast.AST:
        """What to show of a use: the call or the statement around it, if that is short."""
        parents = uses(source).parents
        at, shown = node, node
        while not isinstance(at, ast.Call | ast.stmt):
            above = parents.get(at)
            if not isinstance(above, (*_SHOWN, ast.expr, ast.keyword)):
                break
            if isinstance(at, ast.Attribute) and getattr(above, "func", None) is not at:
                if isinstance(at.ctx, ast.Load):
                    break
            at = above
            if hasattr(at, "lineno") and len(source.text_of(at)) <= _MOST_SHOWN:
                shown = at
        return shown

    def _is_harmless(self, source: Source, node: ast.AST, whole: bool) -> bool:
        parent = uses(source).parents.get(node)
        if not isinstance(getattr(node, "ctx", None) or ast.Load(), ast.Load):
            return False
        if isinstance(parent, ast.Attribute):
            return self._attribute(source, parent)
        if isinstance(parent, ast.Subscript):
            return self._subscript(source, parent, node, whole)
        if isinstance(parent, ast.UnaryOp | ast.Expr):
            return True
        if isinstance(parent, ast.FormattedValue):
            return self._shows("str" if parent.conversion in (-1, ord("s")) else "repr")
        if isinstance(parent, ast.BinOp):
            other = parent.right if parent.left is node else parent.left
            if isinstance(parent.op, ast.Mod) and other is parent.left and not self._flat:
                # `"%r" % W` makes a text of it.
                if not self._is_plain(source, other) or _may_be_text(other):
                    return False
            return self._operand(source, [other], methods_of(parent.op))
        if isinstance(parent, ast.AugAssign):
            methods = methods_of(parent.op)
            return parent.value is node and self._operand(source, [parent.target], methods)
        if isinstance(parent, ast.Compare):
            others = [each for each in (parent.left, *parent.comparators) if each is not node]
            return self._operand(source, others, (*COMPARISONS, "__contains__"))
        if isinstance(parent, ast.IfExp | ast.If | ast.While | ast.Assert):
            return parent.test is node
        if isinstance(parent, ast.For | ast.comprehension):
            return parent.iter is node and self._one_by_one(whole)
        if isinstance(parent, ast.Starred):
            return self._one_by_one(whole)
        if isinstance(parent, ast.Dict):  # `{**D}`
            return self._flat and any(
                key is None and value is node
                for key, value in zip(parent.keys, parent.values, strict=True)
            )
        if isinstance(parent, ast.keyword):
            call = uses(source).parents.get(parent)
            if not isinstance(call, ast.Call):
                return False
            return (parent.arg is None and self._flat) or self._is_kernel(source, call.func)
        return isinstance(parent, ast.Call) and self._argument(source, parent, node, whole)

    def _shows(self, function: str) -> bool:
        """Whether a function makes a text of the value, and hands it to nobody."""
        return self._flat or (self._array and function != "repr")

    def _one_by_one(self, whole: bool) -> bool:
        """Whether the items are given out, and cannot be changed."""
        return self._flat or (self._array and whole and self._ndim == 1)

    def _attribute(self, source: Source, parent: ast.Attribute) -> bool:
        if not isinstance(parent.ctx, ast.Load):
            return False
        if self._array and parent.attr in _READ_ATTRIBUTES:
            return True
        if self._array and parent.attr in _VIEWS:
            return self._is_harmless(source, parent, False)
        call = uses(source).parents.get(parent)
        if not isinstance(call, ast.Call) or call.func is not parent:
            return False
        if self._flat:
            if parent.attr not in _CONTAINER_METHODS:
                return False
            compares = parent.attr in ("index", "count", "get") and call.args
            return not compares or self._operand(source, call.args, COMPARISONS)
        if not self._array or parent.attr not in _ARRAY_METHODS:
            return False
        if any(isinstance(argument, ast.Starred) for argument in call.args):
            return False
        if parent.attr in _REDUCTIONS and len(call.args) > 1:
            return False
        return all(keyword.arg in _METHOD_KEYWORDS for keyword in call.keywords)

    def _subscript(self, source: Source, parent: ast.Subscript, node: ast.AST, whole: bool) -> bool:
        if parent.slice is node:
            methods = ("__getitem__", "__setitem__", "__delitem__", "__class_getitem__")
            return self._operand(source, [parent.value], (*methods, "__missing__"))
        if not isinstance(parent.ctx, ast.Load):
            return False
        if self._flat:
            return True
        if whole and self._ndim is not None and _count_of_numbers(parent.slice) == self._ndim:
            return True
        return self._array and self._is_harmless(source, parent, False)

    def _operand(
        self, source: Source, others: Sequence[ast.expr], methods: tuple[str, ...]
    ) -> bool:
        """Whether no object of the project's gets the value by an operator."""
        if not (self._array or self._flat):
            return False
        if all(self._is_plain(source, node) for node in others):
            return True
        return not self._resolver.defines_operators(*methods)

    def _is_plain(self, source: Source, node: ast.expr) -> bool:
        """Whether an expression surely has a number, text, or array of NumPy's."""
        if isinstance(node, ast.Constant | ast.JoinedStr):
            return True
        if isinstance(node, ast.Tuple | ast.List):
            return all(self._is_plain(source, element) for element in node.elts)
        if isinstance(node, ast.UnaryOp):
            return self._is_plain(source, node.operand)
        if isinstance(node, ast.BinOp):
            return self._is_plain(source, node.left) and self._is_plain(source, node.right)
        if isinstance(node, ast.Call):
            name = self._resolver.qualified(source, node.func) or ""
            called = name.removeprefix("builtins.")
            return called in ("len", "int", "float", "str", "range", "abs") or (
                name.startswith("numpy.") and all(self._is_plain(source, a) for a in node.args)
            )
        return False

    def _argument(self, source: Source, call: ast.Call, node: ast.AST, whole: bool) -> bool:
        if call.func is node:
            return False
        if self._is_kernel(source, call.func):
            return True
        name = self._resolver.qualified(source, call.func) or ""
        starred = any(isinstance(argument, ast.Starred) for argument in call.args)
        keywords = {keyword.arg for keyword in call.keywords}
        if name == "pscdsl.constant":
            return len(call.args) == 1
        if name in _LOOPED and self._one_by_one(whole):
            above = uses(source).parents.get(call)
            return isinstance(above, ast.For | ast.comprehension) and above.iter is call
        owner, _, function = name.partition(".")
        if owner == "builtins":
            known = _CONTAINER_BUILTINS if self._one_by_one(whole) else _BUILTINS
            if function not in known or not keywords <= _BUILTIN_KEYWORDS.get(function, set[str]()):
                return False
            if function in _TEXTS and not self._shows(function):
                return False
            if function in ("isinstance", "print"):
                return function == "print" or not self._resolver.defining("__instancecheck__")
            return len(call.args) == 1
        if owner != "numpy" or starred or not keywords <= _READER_KEYWORDS:
            return False
        if not any(
            function in names and len(call.args) <= most for most, names in _READERS.items()
        ):
            return False
        others = [argument for argument in call.args if argument is not node]
        return self._operand(source, others, _GET_OTHERS)

    def _is_kernel(self, source: Source, function: ast.expr) -> bool:
        """Whether a kernel is called, by a name that nothing else has."""
        return self._resolver.names_kernel(source, function)


def _may_be_text(node: ast.expr) -> bool:
    """Whether an expression may have a text, as far as literals and `str` in it show."""
    return any(
        isinstance(inner, ast.JoinedStr)
        or (isinstance(inner, ast.Constant) and isinstance(inner.value, str))
        or (isinstance(inner, ast.Name) and inner.id == "str")
        for inner in ast.walk(node)
    )


def _count_of_numbers(index: ast.expr) -> int | None:
    """How many integers an index has; None if anything else is in it."""
    items = index.elts if isinstance(index, ast.Tuple) else [index]
    for item in items:
        number = item.operand if isinstance(item, ast.UnaryOp) else item
        if not isinstance(number, ast.Constant) or type(number.value) is not int:
            return None
    return len(items)


# Expressions that make a new array or container, which nothing else refers to.


_CREATED = frozenset(
    "zeros ones empty full arange linspace logspace geomspace eye identity tri copy zeros_like "
    "ones_like empty_like full_like vstack hstack dstack column_stack tile where select pad interp "
    "loadtxt genfromtxt load fromfile fromstring diagflat bincount vander indices polyfit hanning "
    "hamming blackman bartlett kaiser histogram fft.fftfreq fft.rfftfreq linalg.inv "
    "linalg.cholesky".split()
)
"""Functions of NumPy whose result is in memory of its own, whatever they are given."""
_COMPUTED = {
    1: frozenset(
        "exp exp2 expm1 log log2 log10 log1p sqrt cbrt square reciprocal sin cos tan arcsin arccos "
        "arctan sinh cosh tanh arcsinh arccosh arctanh negative positive absolute abs fabs sign "
        "floor ceil rint trunc deg2rad rad2deg sinc spacing".split()
    ),
    2: frozenset(
        "arctan2 hypot add subtract multiply divide true_divide floor_divide power mod remainder "
        "maximum minimum fmax fmin dot matmul inner outer kron cross stack concatenate sum prod "
        "mean std var cumsum cumprod sort argsort unique roll tril triu diff repeat convolve "
        "searchsorted max min".split()
    ),
    3: frozenset({"clip"}),
}
"""The same as long as they get no more arguments by position: the next would be `out`."""
_VIEWING = frozenset("reshape ravel transpose squeeze swapaxes view".split())
"""Methods whose result shows the elements of the array: new if that is."""
_CONTAINERS = frozenset("list dict set sorted".split())
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


_CHANGING = frozenset("append extend insert add update setdefault sort reverse fill".split())
"""Methods by which a function fills what it has made."""


def is_fresh(resolver: Resolver, source: Source, node: ast.expr, kind: Kind) -> bool:
    """Whether an expression whose value is of this kind makes it anew."""
    if isinstance(node, ast.Call) and _is_made_by(resolver, source, node, kind):
        return True
    return _is_made_here(resolver, source, node, kind)


def _is_made_here(resolver: Resolver, source: Source, node: ast.expr, kind: Kind) -> bool:
    """The same without functions of the project."""
    if kind is Kind.FLAT:
        if isinstance(node, (*_DISPLAYS, ast.BinOp)):
            return True
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Attribute) and node.func.attr == "copy":
            return not node.args
        name = resolver.qualified(source, node.func) or ""
        return name.startswith("builtins.") and name.removeprefix("builtins.") in _CONTAINERS
    return kind is Kind.ARRAY and _is_new(resolver, source, node)


def _is_new(resolver: Resolver, source: Source, node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare):
        return not resolver.defines_operators()
    if isinstance(node, ast.Subscript):
        return _is_new(resolver, source, node.value)
    if isinstance(node, ast.Attribute):
        return node.attr in ("T", "mT", "real", "imag") and _is_new(resolver, source, node.value)
    if not isinstance(node, ast.Call) or _may_name_memory(node):
        return False
    name = resolver.qualified(source, node.func) or ""
    if name.startswith("pscdsl.random.") or resolver.names_kernel(source, node.func):
        return True
    if name == "numpy.array":
        return len(node.args) <= 2
    if name.startswith("numpy."):
        short = name.removeprefix("numpy.")
        if short in _CREATED or name.startswith("numpy.random."):
            return True
        return any(short in names and len(node.args) <= count for count, names in _COMPUTED.items())
    if not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "astype":
        return len(node.args) <= 1
    if node.func.attr in ("copy", "repeat", "dot", "sum", "mean", "cumsum"):
        return len(node.args) <= 1
    if node.func.attr in _VIEWING:
        return _is_new(resolver, source, node.func.value)
    return len(node.args) <= 2 and _is_generator(resolver, source, node.func.value)


def _is_made_by(resolver: Resolver, source: Source, call: ast.Call, kind: Kind) -> bool:
    """Whether a function of the project is called that returns what it made, and gave to nobody."""
    place = _function_called(resolver, source, call.func)
    if kind is Kind.DEEP or place is None:
        return False
    home, name = place
    index = uses(home)
    found = index.functions.get(name, ())
    if len(found) != 1 or resolver.stores(home, None, name) or index.owner(found[0], name):
        return False
    if resolver.storing(name):
        return False
    (function,) = found
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return False
    own = [node for node in ast.walk(function) if index.function_of(node) is function]
    if any(isinstance(each, ast.Yield | ast.YieldFrom) for each in own):
        return False
    returns = [each.value for each in own if isinstance(each, ast.Return)]
    return bool(returns) and all(
        return_ is not None
        and (
            _is_own(resolver, home, function, return_.id, kind)
            if isinstance(return_, ast.Name)
            else _is_made_here(resolver, home, return_, kind)
        )
        for return_ in returns
    )


def _function_called(
    resolver: Resolver, source: Source, function: ast.expr
) -> tuple[Source, str] | None:
    """The file and the name of a function of the project, as a call names it."""
    qualified = resolver.qualified(source, function)
    if qualified is not None:
        place = resolver.project_name(qualified)
        return None if place is None or not place[1] else (place[0].source, place[1])
    if isinstance(function, ast.Name) and uses(source).owner(function, function.id) is None:
        return source, function.id
    return None


def _is_own(
    resolver: Resolver, source: Source, function: ast.FunctionDef, name: str, kind: Kind
) -> bool:
    """Whether a local name has what one statement made, and no use of it gives that away."""
    index = uses(source)
    if name in parameters(function) or any(name in each.names for each in index.outer):
        return False
    made = [index.parents.get(each) for each in resolver.stores(source, function, name)]
    bound = [each for each in made if not isinstance(each, ast.AugAssign)]
    if len(bound) != 1 or not isinstance(bound[0], ast.Assign | ast.AnnAssign):
        return False
    value = bound[0].value
    if value is None or not _is_made_here(resolver, source, value, kind):
        return False
    judge = Harmless(resolver, kind)
    for node in index.names.get(name, ()):
        if index.owner(node, name) is not function or not isinstance(node.ctx, ast.Load):
            continue
        parent = index.parents.get(node)
        if index.function_of(node) is not function:
            return False
        if isinstance(parent, ast.Return) or _fills(index.parents, parent, node):
            continue
        if judge.harm(source, node) is not None:
            return False
    return True


def _fills(parents: Mapping[ast.AST, ast.AST], parent: ast.AST | None, node: ast.AST) -> bool:
    """Whether an element of a value is stored, or a method that fills it is called."""
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return not isinstance(parent.ctx, ast.Load)
    if not isinstance(parent, ast.Attribute) or parent.attr not in _CHANGING:
        return False
    call = parents.get(parent)
    return isinstance(call, ast.Call) and call.func is parent


def _may_name_memory(call: ast.Call) -> bool:
    """Whether an argument may be the memory of the result."""
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return True
    return any(
        keyword.arg in (None, "out", "copy", "buffer", "mmap_mode") for keyword in call.keywords
    )


def _is_generator(resolver: Resolver, source: Source, node: ast.expr) -> bool:
    """Whether this is a random generator of NumPy's; it draws new arrays."""
    if isinstance(node, ast.Name):
        index = uses(source)
        scope = index.owner(node, node.id)
        stores = [
            each
            for each in index.names.get(node.id, ())
            if not isinstance(each.ctx, ast.Load) and index.owner(each, node.id) is scope
        ]
        made = index.parents.get(stores[0]) if len(stores) == 1 else None
        return isinstance(made, ast.Assign) and _is_generator(resolver, source, made.value)
    if not isinstance(node, ast.Call):
        return False
    name = resolver.qualified(source, node.func)
    return name in ("numpy.random.default_rng", "numpy.random.RandomState")
