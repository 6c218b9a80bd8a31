"""A target: what is done with typed programs for a device, as tables that can be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from pscdsl._src.primitives.pointwise import Key
from pscdsl._src.targets.forms import Form, Pass, Rewrite, Translation

Row = TypeVar("Row", Rewrite, Translation)


@dataclass(frozen=True, eq=False)
class Target:
    """Rewrites, translations and passes for a device; of a row the first that applies is used.

    What no table has is emitted by the primitive's own rule, which is right on every device.
    """

    name: str
    rewrites: Mapping[Key, tuple[Rewrite, ...]] = field(
        default_factory=dict[Key, tuple[Rewrite, ...]]
    )
    """What replaces equations by programs, before anything is emitted."""
    translations: Mapping[Key, tuple[Translation, ...]] = field(
        default_factory=dict[Key, tuple[Translation, ...]]
    )
    """How equations are emitted."""
    passes: tuple[Pass, ...] = ()
    """What replaces whole blocks, in order, before their equations are rewritten."""
    options: tuple[Form, ...] = ()
    """The forms that are options of the compiler."""

    def forms(self) -> Iterator[Form]:
        """The forms that it has, some of them several times."""
        for table in (self.rewrites, self.translations):
            for row in table.values():
                yield from [each.form for each in row if each.form is not None]
        yield from [each.form for each in self.passes]
        yield from self.options

    def without(self, names: frozenset[str]) -> Target:
        """The same without some forms."""
        if not names:
            return self
        return Target(
            self.name,
            _without(self.rewrites, names),
            _without(self.translations, names),
            tuple([each for each in self.passes if each.form.name not in names]),
            tuple([each for each in self.options if each.name not in names]),
        )


def _without(
    table: Mapping[Key, tuple[Row, ...]], names: frozenset[str]
) -> dict[Key, tuple[Row, ...]]:
    return {
        key: tuple([each for each in row if each.form is None or each.form.name not in names])
        for key, row in table.items()
    }
