"""The list of uses of a captured value that neither write it nor give it away.

A use that is not on the list may write: nothing is followed.  Objects of the project's own classes
may be handed the other operand of an operator, so that operands count only as long as no class has
such a method, or what stands on the other side is plain.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from pscdsl._src.frontend.captures.resolution import COMPARISONS, Resolver, methods_of
from pscdsl._src.frontend.mutable import Kind
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.frontend.text.uses import uses
from pscdsl._src.frontend.values.purity import DICT_METHODS, LIST_METHODS, SET_METHODS
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
        "array_str log1p expm1 exp2 log2".split()
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
                key is None and each is node
                for key, each in zip(parent.keys, parent.values, strict=True)
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
        if any(isinstance(each, ast.Starred) for each in call.args):
            return False
        if parent.attr in _REDUCTIONS and len(call.args) > 1:
            return False
        return all(each.arg in _METHOD_KEYWORDS for each in call.keywords)

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
        if all(self._is_plain(source, each) for each in others):
            return True
        return not self._resolver.defines_operators(*methods)

    def _is_plain(self, source: Source, node: ast.expr) -> bool:
        """Whether an expression surely has a number, text, or array of NumPy's."""
        if isinstance(node, ast.Constant | ast.JoinedStr):
            return True
        if isinstance(node, ast.Tuple | ast.List):
            return all(self._is_plain(source, each) for each in node.elts)
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
        starred = any(isinstance(each, ast.Starred) for each in call.args)
        keywords = {each.arg for each in call.keywords}
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
        others = [each for each in call.args if each is not node]
        return self._operand(source, others, _GET_OTHERS)

    def _is_kernel(self, source: Source, function: ast.expr) -> bool:
        """Whether a kernel is called, by a name that nothing else has."""
        return self._resolver.names_kernel(source, function)


def _may_be_text(node: ast.expr) -> bool:
    """Whether an expression may have a text, as far as literals and `str` in it show."""
    return any(
        isinstance(each, ast.JoinedStr)
        or (isinstance(each, ast.Constant) and isinstance(each.value, str))
        or (isinstance(each, ast.Name) and each.id == "str")
        for each in ast.walk(node)
    )


def _count_of_numbers(index: ast.expr) -> int | None:
    """How many integers an index has; None if anything else is in it."""
    items = index.elts if isinstance(index, ast.Tuple) else [index]
    for each in items:
        number = each.operand if isinstance(each, ast.UnaryOp) else each
        if not isinstance(number, ast.Constant) or type(number.value) is not int:
            return None
    return len(items)
