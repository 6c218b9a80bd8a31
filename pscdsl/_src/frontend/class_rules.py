"""The bases, decorators and options of class statements that have a meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class ClassRules:
    """The names that mean something in class statements."""

    plain: str
    """The kind of a class without bases that have a meaning."""
    modules: frozenset[str]
    """Bases that make a frozen dataclass of a class."""
    dataclasses: frozenset[str]
    """Decorators that make a frozen dataclass of a class."""
    without_effect: frozenset[str]
    """Decorators that leave a class as it is."""
    fields: frozenset[str]
    """Functions that declare a field."""
    is_closed: bool
    """Whether a class with anything else is refused, rather than read without it."""


_WITHOUT_EFFECT: Final = frozenset(
    {"typing.final", "typing.dataclass_transform", "typing.runtime_checkable"}
)
IN_KERNELS: Final = ClassRules(
    plain="namespace",
    modules=frozenset(),
    dataclasses=frozenset(),
    without_effect=_WITHOUT_EFFECT,
    fields=frozenset({"dataclasses.field"}),
    is_closed=True,
)
"""The rules of our own language."""
IN_JAX: Final = ClassRules(
    plain="record",
    modules=frozenset({"equinox.Module", "flax.struct.PyTreeNode"}),
    dataclasses=frozenset({"chex.dataclass", "flax.struct.dataclass"}),
    without_effect=_WITHOUT_EFFECT
    | {
        "jax.tree_util.register_dataclass",
        "jax.tree_util.register_pytree_node_class",
        "jax.tree_util.register_pytree_with_keys_class",
    },
    fields=frozenset({"dataclasses.field", "equinox.field", "flax.struct.field"}),
    is_closed=False,
)
"""The rules of JAX programs, whose instances do not change once made."""


def rules(is_jax: bool) -> ClassRules:
    """Return the rules of a file."""
    return IN_JAX if is_jax else IN_KERNELS
