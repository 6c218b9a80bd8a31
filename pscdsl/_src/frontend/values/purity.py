"""What is impure, by name, and what to write instead."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from typing import Any

from pscdsl._src.frontend import elsewhere
from pscdsl._src.frontend.values.values import External
from pscdsl.numpy import methods
from pscdsl.typing.codes.language import ArrayLeavesProgram, Unsupported
from pscdsl.typing.codes.limits import NotSupported, UnknownFunction, UnknownValue
from pscdsl.typing.codes.purity import HiddenInput, Mutation, RandomState, SideEffect
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic, Label

EFFECTS: dict[str, str] = {
    "builtins.print": "return the value and print it outside",
    "builtins.open": "read or write files outside, and pass arrays",
    "logging": "log outside, from what the kernel returns",
    "warnings": "warn outside",
    "subprocess": "run processes outside",
    "shutil": "work with files outside",
    "socket": "talk to the network outside",
    "requests": "talk to the network outside",
    "urllib": "talk to the network outside",
    "numpy.save": "save what the kernel returns",
    "numpy.savez": "save what the kernel returns",
    "numpy.savetxt": "save what the kernel returns",
    "numpy.seterr": "set it outside",
    "numpy.set_printoptions": "set them outside",
    "time.sleep": "wait outside",
    "builtins.breakpoint": "stop outside, before or after the call",
    "builtins.exit": "leave outside, after the call",
    "builtins.quit": "leave outside, after the call",
    "sys.stdout": "return the value and print it outside",
    "sys.stderr": "return the value and print it outside",
    "sys.exit": "",
    "jax.debug": "return the value and print it outside",
    "tqdm": "show progress outside, around calls of the kernel",
    **dict.fromkeys(
        "threading multiprocessing concurrent asyncio queue sched select selectors _thread".split(),
        "run tasks side by side outside",
    ),
    **dict.fromkeys(
        "http smtplib ftplib ssl webbrowser syslog".split(), "talk to the network outside"
    ),
    **dict.fromkeys(
        "tempfile sqlite3 dbm shelve csv zipfile tarfile".split(), "work with files outside"
    ),
    **dict.fromkeys("pickle.dump json.dump marshal.dump".split(), "write files outside"),
    **dict.fromkeys("atexit signal gc faulthandler tracemalloc".split(), "set it up outside"),
    **dict.fromkeys("pdb traceback".split(), "debug outside, with what the kernel returns"),
    "decimal.setcontext": "set it outside",
    "locale.setlocale": "set it outside",
    "builtins.help": "read it outside",
}
INPUTS: dict[str, tuple[str, str]] = {
    "builtins.input": ("the keyboard", "pass it as an argument"),
    "time": ("the clock", "read it outside and pass it as an argument"),
    "datetime": ("the clock", "read it outside and pass it as an argument"),
    "os": ("the operating system", "read it outside and pass it as an argument"),
    "sys": ("the interpreter", "read it outside and pass it as an argument"),
    "pathlib": ("the file system", "read files outside and pass arrays"),
    "io": ("a file", "read files outside and pass arrays"),
    "numpy.load": ("a file", "load it outside and pass it as an argument"),
    "numpy.loadtxt": ("a file", "load it outside and pass it as an argument"),
    "numpy.genfromtxt": ("a file", "load it outside and pass it as an argument"),
    "numpy.fromfile": ("a file", "load it outside and pass it as an argument"),
    "numpy.empty_like": ("memory", "use `np.zeros_like`"),
    "uuid": ("the clock and the network", "pass it as an argument"),
    "platform": ("the machine", "pass it as an argument"),
    "getpass": ("the environment", "pass it as an argument"),
    **dict.fromkeys(
        ("builtins.__name__", "builtins.__file__", "builtins.__package__", "builtins.__spec__"),
        ("how the module was loaded", "pass what depends on it as an argument"),
    ),
    "builtins.__debug__": ("how Python was started", "pass it as an argument"),
    "locale": ("the locale", "pass what depends on it as an argument"),
    "contextvars": ("the context", "read it outside and pass it as an argument"),
    "decimal": ("the context", "compute it outside and pass it as an argument"),
    "inspect": ("the stack or the source", "pass what is needed as an argument"),
    "weakref": ("what is still alive", "pass it as an argument"),
    "importlib": ("the modules that are installed", "use an `import` statement"),
    "pkgutil": ("the modules that are installed", "use an `import` statement"),
    **dict.fromkeys(
        "glob fileinput linecache pickle.load json.load marshal.load configparser".split(),
        ("a file", "read it outside and pass it as an argument"),
    ),
    **dict.fromkeys(
        "resource pwd grp zoneinfo readline".split(), ("the machine", "pass it as an argument")
    ),
    "itertools.count": ("an iterator's state", "use `range`, or pass a number"),
    "itertools.cycle": ("an iterator's state", "use a tuple and `%`"),
    "builtins.id": ("an address in memory", "pass an explicit number"),
    "builtins.hash": ("a per-process seed", "pass an explicit number"),
    "builtins.globals": ("all global names", "name what is needed"),
    "builtins.locals": ("all local names", "name what is needed"),
    "builtins.vars": ("all names of an object", "name what is needed"),
}
CHANGES: dict[str, str] = {
    "builtins.setattr": "make a changed copy: `p.replace(name=…)` of a record",
    "builtins.delattr": "make a copy without it",
    "numpy.put": "x = psc.update(x, index, value)",
    "numpy.put_along_axis": "x = psc.update(x, index, value)",
    "numpy.place": "x = np.where(mask, value, x)",
    "numpy.putmask": "x = np.where(mask, value, x)",
    "numpy.copyto": "x = y, or x = np.where(mask, y, x)",
    "numpy.fill_diagonal": "x = np.where(np.eye(n, dtype=bool), value, x)",
}
"""Functions that change an argument in place."""
BUILTINS: dict[str, str] = {
    "exec": "write the code itself",
    "eval": "write the expression itself",
    "compile": "write the code itself",
    "__import__": "use an `import` statement",
    "iter": "index the tuple, or loop over it",
    "next": "index the tuple, or loop over it",
    "hasattr": "what a value is, is known while checking: leave it out, or use `isinstance`",
    "super": "call the method of the class by its name: `Base.method(self)`",
}
RANDOM = ("random", "numpy.random", "secrets")
LIST_METHODS = {
    "append": "{x} = {x} + [item], or a comprehension",
    "extend": "{x} = {x} + items",
    "insert": "{x} = {x}[:i] + [item] + {x}[i:]",
    "pop": "{x}[-1], and {x}[:-1] for the rest",
    "remove": "a comprehension with `if`",
    "clear": "{x} = []",
    "sort": "sorted({x})",
    "reverse": "{x}[::-1]",
}
DICT_METHODS = {
    "update": "{{**{x}, **other}}",
    "setdefault": "{{**{x}, key: value}}",
    "pop": "a comprehension without the key",
    "popitem": "a comprehension without the key",
    "clear": "{{}}",
}

SET_METHODS = frozenset(
    "add discard remove pop clear update intersection_update difference_update "
    "symmetric_difference_update".split()
)


def _lookup(table: Mapping[str, Any], name: str) -> Any:
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        found = table.get(".".join(parts[:count]))
        if found is not None:
            return found
    return None


def external_call(name: str) -> Diagnostic:
    """What is wrong with calling a function of this qualified name."""
    shown = name.removeprefix("builtins.")
    if any(name == each or name.startswith(each + ".") for each in RANDOM):
        return RandomState(function=shown)
    effect = _lookup(EFFECTS, name)
    if effect is not None:
        return SideEffect(function=shown, rewrite=effect)
    hidden = _lookup(INPUTS, name)
    if hidden is not None:
        return HiddenInput(function=shown, what=hidden[0], rewrite=hidden[1])
    change = CHANGES.get(name)
    if change is not None:
        return Mutation(what=f"`{shown}`", rewrite=change)
    if name.startswith("builtins."):
        return Unsupported(what=f"`{shown}`", rewrite=BUILTINS.get(shown, ""))
    if name.startswith("numpy.") and name != "numpy.frompyfunc":
        return NotSupported(what=f"`{shown}`", instead=elsewhere.instead_of(name))
    here = elsewhere.equivalent(name)
    return UnknownFunction(function=shown, here=here, instead=elsewhere.instead_of(name))


def external_use(value: External) -> Diagnostic:
    """What is wrong with calling something that is not known."""
    return external_value(value) if value.why else external_call(value.name)


def external_value(value: External) -> Diagnostic:
    """What is wrong with using something that is not known as a value."""
    if value.why:
        first = value.why[0]
        return first.replaced(span=NOWHERE, labels=(Label(first.span, f"`{value.name}`"),))
    found = external_call(value.name)
    if not isinstance(found, UnknownFunction):
        return found
    return UnknownValue(name=value.name, here=found.here, instead=found.instead)


def may_not_exist(value: External) -> bool:
    """Whether an attribute of a module may be missing; those of Python and NumPy are looked up."""
    root, *path = value.name.split(".")
    if not value.library or value.why or not path:
        return False
    if root not in sys.stdlib_module_names | {"numpy"} or root not in sys.modules:
        return True
    owner: Any = sys.modules[root]
    for number, name in enumerate(path):
        module = sys.modules.get(".".join([root, *path[: number + 1]]))
        owner = getattr(owner, name, module)
        if owner is None:
            return True
    return False


def library_call(name: str, kwargs: Mapping[str, Any]) -> Diagnostic | None:
    """What is wrong with a call of a known function, by its keywords."""
    if kwargs.get("out") is not None:
        return Mutation(what=f"`out=` of `{name}`", rewrite="use the result")
    return None


def ufunc_at(name: str) -> Diagnostic:
    """What is wrong with `np.add.at`."""
    combine = name.removeprefix("numpy.")
    rewrite = f'x = psc.update(x, index, value, combine="{combine}")'
    return Mutation(what=f"`{name}.at`", rewrite=rewrite)


def is_refused(name: str) -> bool:
    """Whether an attribute of an array changes it or leaves the program."""
    return name in methods.IN_PLACE or name in methods.LEAVES_PROGRAM


def array_attribute(name: str, owner: str) -> Diagnostic:
    """What is wrong with such an attribute."""
    if name in methods.IN_PLACE:
        rewrite = methods.IN_PLACE[name]
        return Mutation(what=f"`{owner}.{name}`", rewrite=rewrite.replace("{x}", owner))
    rewrite = methods.LEAVES_PROGRAM[name]
    return ArrayLeavesProgram(function=f".{name}", rewrite=rewrite.replace("{x}", owner))


def static_attribute(value: Any, name: str, owner: str = "") -> Diagnostic | None:
    """What is wrong with an attribute of a list or dict, by its name; `owner` is its text."""
    if isinstance(value, list) and name in LIST_METHODS:
        return made_anew(f"`list.{name}`", LIST_METHODS[name].format(x=owner or "items"))
    if isinstance(value, set) and name in SET_METHODS:
        return made_anew(f"`set.{name}`", "a set comprehension, or `s | {item}`")
    if isinstance(value, dict) and name in DICT_METHODS:
        return made_anew(f"`dict.{name}`", DICT_METHODS[name].format(x=owner or "d"))
    return None


def made_anew(what: str, rewrite: str) -> Diagnostic:
    """The refusal to change a list, set or dict, which all its names would show."""
    return Mutation(what=what, rewrite=f"{rewrite}; another name of it keeps what it has")


def index_text(text: str, node: ast.expr) -> str:
    """How an index is written as an argument of `psc.update`."""
    if any(isinstance(each, ast.Slice) for each in ast.walk(node)):
        return f"np.s_[{text}]"
    return f"({text})" if isinstance(node, ast.Tuple) else text
