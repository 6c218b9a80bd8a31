"""Constructors of JAX programs' classes: `__init__` and `__post_init__`, which store into `self`.

The text of such a method is read with a dict in place of `self`: `self.x` is the item `"x"`.  So
branches, loops and helpers store fields as they store items everywhere else.  The items at the end
are the fields of the instance, which does not change from then on.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.interpreter.places import load
from pscdsl._src.frontend.purity import parts
from pscdsl._src.frontend.text.source import with_defaults
from pscdsl._src.frontend.values import AnyValue, Applicable, External, RecordValue, StaticFunction
from pscdsl._src.ir.builder import Builder
from pscdsl.typing.codes.language import BadArguments, Unsupported
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.python_containers import is_dict

if TYPE_CHECKING:
    from pscdsl._src.frontend.interpreter.records import Member, RecordClass

_Fields: TypeAlias = "Mapping[str, AnyValue]"

_Node = TypeVar("_Node", bound=ast.AST)

_SUPER: Final = "super().__init__"
"""The parameter that stands for the constructor of the base class."""
_METHOD: Final = "a method of the instance"
"""The parameter that stands for a look-up in the instance as far as it is made."""


@dataclass
class Construction:
    """The making of instances of a class."""

    generates_init: bool
    """Whether its fields are the parameters of its constructor, if it defines none."""
    has_unseen_bases: bool
    """Whether it inherits from classes that are not followed."""
    is_unseen: bool | None = None
    """Whether the constructor of a class that is not followed makes its instances; None before it
    is looked up."""
    rewritten: dict[ast.FunctionDef, tuple[ast.FunctionDef, frozenset[str]]] = field(
        default_factory=dict[ast.FunctionDef, "tuple[ast.FunctionDef, frozenset[str]]"]
    )
    """The methods that store fields, as functions of a dict, with the values of the class body that
    they may store anew."""

    def instance(
        self, here: Builder, cls: RecordClass, args: Sequence[AnyValue], kwargs: _Fields
    ) -> AnyValue:
        """Return a new instance; one that another library makes is unknown."""
        if self.is_unseen is None:
            self.is_unseen = _is_unseen(cls, cls)
        if self.is_unseen:
            from pscdsl._src.frontend.jax_annotations import of_library  # these read annotations

            function = External(f"{cls.module}.{cls.title}", library=True)
            unknown = of_library(here, function, (*args, *kwargs.values()))
            if unknown is not None:
                return unknown[0]
        found = self._fields(here, cls, cls, {}, args, kwargs)
        made = RecordValue(cls, self._complete(cls, cls.converted(here, found)))
        for each in cls.ancestry():  # Equinox runs all of them
            if (check := each.members.get("__check_init__")) is not None:
                assert isinstance(check.value, Applicable)
                check.value.apply(here, (made,), {})
        return made

    def replaced(self, here: Builder, value: RecordValue, changes: _Fields) -> RecordValue:
        """Return an instance with some fields changed; it is constructed anew."""
        made = self.instance(here, value.cls, (), {**value.fields, **changes})
        if not isinstance(made, RecordValue):
            raise Failure(NotSupported(what=f"a changed copy of `{value.cls.title}`"))
        return made

    def _fields(
        self,
        here: Builder,
        cls: RecordClass,
        owner: RecordClass,
        known: _Fields,
        args: Sequence[AnyValue],
        kwargs: _Fields,
    ) -> _Fields:
        """Return the fields of an instance of a class after the constructor of one of its bases."""
        if (init := owner.members.get("__init__")) is not None:
            return self._stored(here, cls, init, known, args, kwargs)
        own = owner.construction
        if own is None or own.has_unseen_bases:
            what = f"a call of `{owner.title}`, which inherits from classes that are not followed,"
            raise Failure(NotSupported(what=what))
        if not own.generates_init:
            if args or kwargs:
                raise Failure(BadArguments(function=owner.title, problem="takes no arguments"))
            return known
        found = {**known, **owner.given_fields(args, kwargs)}
        after = cls.members.get("__post_init__")
        if after is None or cls.kind == "namedtuple":
            return found
        if any(each.convert is not None for each in cls.fields):
            what = f"a call of `{cls.title}`, whose fields are converted before `__post_init__`,"
            raise Failure(NotSupported(what=what))
        return self._stored(here, cls, after, found, (), {})

    def _complete(self, cls: RecordClass, values: _Fields) -> dict[str, AnyValue]:
        """Return fields in order, with defaults for those that are not stored."""
        found: dict[str, AnyValue] = {}
        for each in cls.fields:
            if each.name in values:
                found[each.name] = values[each.name]
            elif each.default is not None:
                found[each.name] = each.default()
            else:
                problem = f"stores no value for the field '{each.name}'"
                raise Failure(BadArguments(function=cls.title, problem=problem))
        others = {name: value for name, value in values.items() if name not in found}
        if others and self.generates_init:
            problem = f"stores '{next(iter(others))}', which is no field"
            raise Failure(BadArguments(function=cls.title, problem=problem))
        return {**found, **others}

    def _stored(
        self,
        here: Builder,
        cls: RecordClass,
        member: Member,
        known: _Fields,
        args: Sequence[AnyValue],
        kwargs: _Fields,
    ) -> _Fields:
        """Return the fields of an instance after a method that stores some of them.

        A Failure if the method does anything else with the instance than to store and read
        fields, or to call methods that read them.
        """
        method = member.value
        node = method.node if isinstance(method, Closure) else None
        if member.kind != "method" or not isinstance(node, ast.FunctionDef):
            what = f"a call of `{cls.title}`, whose constructor is decorated,"
            raise Failure(NotSupported(what=what))
        assert isinstance(method, Closure)
        owner = _owner(cls, method)

        def from_base(
            here: Builder, fields: AnyValue, /, *args: AnyValue, **kwargs: AnyValue
        ) -> AnyValue:
            assert is_dict(fields)
            if owner.parents:
                return dict(self._fields(here, cls, owner.parents[0], fields, args, kwargs))
            if owner.construction is None or owner.has_unseen_bases:
                what = f"`super()` of `{owner.title}`, which inherits from what is not followed,"
                raise Failure(NotSupported(what=what))
            return fields

        def of_instance(
            here: Builder, fields: AnyValue, attribute: str, *args: AnyValue, **kwargs: AnyValue
        ) -> AnyValue:
            assert is_dict(fields)
            if attribute == "__class__":
                return cls
            found = cls.attribute(here, RecordValue(cls, dict(fields)), attribute)
            if cls.members[attribute].kind not in ("property", "value"):
                assert isinstance(found, Applicable)
                found = found.apply(here, args, kwargs)
            if _may_show(cls, found):  # fields may change after it
                what = f"what `self.{attribute}` returns in a constructor"
                raise Failure(NotSupported(what=what))
            return found

        if node not in self.rewritten:
            stored = _stored_values(cls, node)
            self.rewritten[node] = _with_dict(cls, method, node, stored), stored
        functions = StaticFunction(_SUPER, from_base), StaticFunction(_METHOD, of_instance)
        made, stored = self.rewritten[node]
        values = {each: cls.class_attribute(each) for each in stored}
        given = ({**values, **known}, *functions, *args)
        found = replace(method, node=made).apply(here, given, kwargs)
        if not is_dict(found):
            raise Failure(NotSupported(what=f"this constructor of `{cls.title}`"))
        return found


def _is_unseen(cls: RecordClass, owner: RecordClass) -> bool:
    """Return whether the constructor of a class calls one that is not followed."""
    init = owner.members.get("__init__")
    if init is None:
        return owner.construction is None or owner.construction.has_unseen_bases
    if not isinstance(init.value, Closure):
        return False
    calls = any(
        isinstance(each, ast.Attribute)
        and each.attr == "__init__"
        and isinstance(each.value, ast.Call)
        for each in ast.walk(init.value.node)
    )
    owner = _owner(cls, init.value)
    if not calls:
        return False
    if owner.parents:
        return _is_unseen(cls, owner.parents[0])
    return owner.construction is None or owner.construction.has_unseen_bases


def _owner(cls: RecordClass, method: Closure) -> RecordClass:
    """Return the class whose statement defines a method."""

    def has_it(each: RecordClass) -> bool:
        found = each.members.get(method.name)
        return found is not None and found.value is method

    *_, owner = filter(has_it, cls.ancestry())
    return owner


def _stored_values(cls: RecordClass, node: ast.FunctionDef) -> frozenset[str]:
    """Return the values in the body of the class that a method may store anew."""
    found = set[str]()
    for each in ast.walk(node):
        match each:
            case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.Call(func=ast.Name("setattr") | ast.Attribute(attr="__setattr__")):
                found.update(cls.members)
            case _:
                pass
    return frozenset([x for x in found & cls.members.keys() if cls.members[x].kind == "value"])


def _may_show(cls: RecordClass, value: AnyValue) -> bool:
    """Return whether a value may read the instance when it is used."""
    if isinstance(value, Applicable) or (isinstance(value, RecordValue) and value.cls is cls):
        return True
    return any(_may_show(cls, part) for part in parts(value))


def _with_dict(
    cls: RecordClass, method: Closure, node: ast.FunctionDef, stored: frozenset[str]
) -> ast.FunctionDef:
    """Return the statement of a method with a dict in place of the instance."""
    positional = [*node.args.posonlyargs, *node.args.args]
    if not positional:
        raise Failure(NotSupported(what=f"a constructor of `{cls.title}` without `self`"))
    made = deepcopy(node)
    own, *others = [*made.args.posonlyargs, *made.args.args]
    added = [ast.copy_location(ast.arg(name), own) for name in (_SUPER, _METHOD)]
    placed = max(len(node.args.posonlyargs) - 1, 0)
    made.args.posonlyargs = [own, *added, *others[:placed]]
    made.args.args = others[placed:]
    made.decorator_list = []
    rewriting = _Rewriting(cls, method, own.arg, stored)
    body = [rewriting.visit(statement) for statement in made.body]
    me = ast.Name(own.arg, ast.Load())
    start = ast.Assign([ast.Name(own.arg, ast.Store())], ast.Dict([None], [me]))
    made.body = [_at(own, start), *body, _at(node.body[-1], ast.Return(me))]
    return made


def _at(place: ast.AST, node: _Node) -> _Node:
    """Return a node all of whose parts are at the place of another."""
    for each in ast.walk(node):
        ast.copy_location(each, place)
    return node


class _Rewriting(ast.NodeTransformer):
    """Rewrites what a method does with its instance as what it does with a dict."""

    def __init__(
        self, cls: RecordClass, method: Closure, name: str, stored: frozenset[str]
    ) -> None:
        self.cls = cls
        self.method = method
        self.name = name
        self.stored = stored
        self.is_inside = False
        """Whether it is in a function that the method defines."""

    def _is_own(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id == self.name

    def _refusal(self, node: ast.AST, what: str) -> Failure:
        rewrite = "store fields, read them, or call methods"
        return Failure(Unsupported(what=what, rewrite=rewrite, span=self.method.source.span(node)))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Refuse the instance where it is more than the owner of a field."""
        if self._is_own(node):
            raise self._refusal(node, f"`{self.name}` as a value in a constructor")
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """Refuse a parameter that hides the instance."""
        if node.arg == self.name:
            raise self._refusal(node, f"another `{self.name}` in a constructor")
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Rewrite a function that the method defines; its returns are its own."""
        outside, self.is_inside = self.is_inside, True
        self.generic_visit(node)
        self.is_inside = outside
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        """Return the fields where the method ends early."""
        if self.is_inside:
            return self.generic_visit(node)
        if node.value is not None and not (
            isinstance(node.value, ast.Constant) and node.value.value is None
        ):
            raise self._refusal(node, "a value that a constructor returns")
        return _at(node, ast.Return(ast.Name(self.name, ast.Load())))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Rewrite a field as an item, and a property as a look-up."""
        if not self._is_own(node.value):
            return self.generic_visit(node)
        if node.attr == "__class__" and isinstance(node.ctx, ast.Load):
            return self._of_instance(node, node.attr, [], [])
        member = self.cls.members.get(node.attr)
        if member is None or node.attr in self.stored:
            index = ast.copy_location(ast.Constant(node.attr), node)
            item = ast.Subscript(node.value, index, node.ctx)
            return ast.copy_location(item, node)
        if member.kind not in ("property", "value") or not isinstance(node.ctx, ast.Load):
            raise self._refusal(node, f"`{self.name}.{node.attr}` as a value in a constructor")
        return self._of_instance(node, node.attr, [], [])

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Rewrite a call of a method, and stores by functions."""
        match node.func:
            case ast.Attribute(value=owner, attr=name) if self._is_own(owner) and (
                (member := self.cls.members.get(name)) is not None
                and member.kind in ("method", "static", "class")
            ):
                args = [self.visit(each) for each in node.args]
                return self._of_instance(node, name, args, [*map(self.visit, node.keywords)])
            case _:
                return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Rewrite `super().__init__(…)` and `object.__setattr__(self, "x", …)`."""
        me = ast.copy_location(ast.Name(self.name, ast.Store()), node)
        match node.value:
            case (
                ast.Call(
                    func=ast.Attribute(value=ast.Call(func=ast.Name("super")), attr="__init__")
                ) as call
            ) if not self.is_inside:
                call.func = ast.copy_location(ast.Name(_SUPER, ast.Load()), call)
                self.generic_visit(call)
                call.args.insert(0, self._so_far(call))
                return ast.copy_location(ast.AugAssign(me, ast.BitOr(), call), node)
            case ast.Call(
                func=ast.Attribute(value=ast.Name("object"), attr="__setattr__")
                | ast.Name("setattr"),
                args=[owner, name, value],
                keywords=[],
            ) if self._is_own(owner):
                item = ast.Subscript(owner, self.visit(name), ast.Store())
                store = ast.Assign([ast.copy_location(item, node)], self.visit(value))
                return ast.copy_location(store, node)
            case _:
                return self.generic_visit(node)

    def _of_instance(
        self, node: ast.expr, name: str, args: list[ast.expr], keywords: list[ast.keyword]
    ) -> ast.expr:
        """Return a look-up in the instance as far as it is made."""
        function = ast.copy_location(ast.Name(_METHOD, ast.Load()), node)
        constant = ast.copy_location(ast.Constant(name), node)
        call = ast.Call(function, [self._so_far(node), constant, *args], keywords)
        return ast.copy_location(call, node)

    def _so_far(self, node: ast.expr) -> ast.expr:
        """Return an expression for the fields that are stored so far."""
        return _at(node, ast.Dict([None], [ast.Name(self.name, ast.Load())]))


def after_construction(cls: RecordClass, method: Closure) -> Closure:
    """Return a method as a function of the parameters of the constructor and its own."""
    init = cls.members["__init__"].value
    node = deepcopy(method.node)
    if not isinstance(init, Closure) or not isinstance(node, ast.FunctionDef):
        raise Failure(NotSupported(what=f"the constructor of `{cls.title}`"))
    given, own = _parameters(init.node.args), _parameters(node.args)
    if given is None or own is None:
        raise Failure(NotSupported(what=f"`*args` of a constructor or method of `{cls.title}`"))
    taken = {each.arg for each in own}
    names = {x.arg: f"{x.arg}_of_{cls.title}" if x.arg in taken else x.arg for x in given}
    annotated = dict(method.annotated)
    added = [
        ast.copy_location(ast.arg(names[each.arg], _moved(init, each.annotation, annotated)), each)
        for each in given
    ]
    keywords = _passed({each.arg: names[each.arg] for each in given})
    made = ast.Call(ast.Name(cls.title, ast.Load()), [], keywords)
    function = ast.Attribute(made, method.name, ast.Load())
    result = ast.Return(ast.Call(function, [], _passed({each.arg: each.arg for each in own})))
    for place in (*added, *(default for default in given.values() if default is not None)):
        if init.source is not method.source:
            _at(node, place)
    node.args = ast.arguments(
        [], [], None, [*added, *own], [*given.values(), *own.values()], None, []
    )
    node.body = [_at(node.body[0], result)]
    node.decorator_list = []
    defaults = {**{names[n]: value for n, value in init.defaults.items()}, **method.defaults}
    return replace(method, node=node, defaults=defaults, annotated=annotated)


def _moved(
    function: Closure, annotation: ast.expr | None, annotated: dict[str, AnyValue]
) -> ast.expr | None:
    """Return an annotation for another function, whose names in annotations are added to."""
    if annotation is None:
        return None
    made = deepcopy(annotation)
    frame = function.annotation_frame()
    for each in ast.walk(made):
        if isinstance(each, ast.Name):
            value = frame.lookup(each.id)
            each.id = f"{each.id} of {function.scope.module}"
            annotated[each.id] = load(value)
    return made


def _parameters(spec: ast.arguments) -> dict[ast.arg, ast.expr | None] | None:
    """Return the parameters after `self` with their defaults; None if there may be more."""
    if spec.vararg or spec.kwarg or spec.posonlyargs:
        return None
    defaults = dict(with_defaults(spec))
    return {each: deepcopy(defaults.get(each)) for each in (*spec.args[1:], *spec.kwonlyargs)}


def _passed(names: Mapping[str, str]) -> list[ast.keyword]:
    return [ast.keyword(to, ast.Name(name, ast.Load())) for to, name in names.items()]
