"""Random statements from templates: what takes several lines, and what may be a view."""

from __future__ import annotations

import re

from tests.fuzz.numpy_loops import LOOPS
from tests.fuzz.numpy_masks import Masks
from tests.fuzz.numpy_templates import MAYBE_VIEWS, STRAIGHT
from tests.fuzz.numpy_values import Array


class Idioms(Masks):
    """Writes statements from templates, too."""

    def enable(self) -> None:
        """Choose statements, and some templates."""
        super().enable()
        if self.straight:
            plain = [each for each in STRAIGHT if "$c" not in each and "if " not in each]
            self.chosen = self.rng.sample(plain, 12)
        else:
            self.chosen = [*self.rng.sample(LOOPS, 6), *self.rng.sample(STRAIGHT, 6)]
        if self.chance(0.5):
            self.enabled += [self.idiom] * self.rng.choice((1, 3, 9))
        if self.chance(0.3):
            self.enabled += [self.maybe_view] * self.rng.choice((1, 3, 9))

    def idiom(self) -> bool:
        """A template, filled."""
        return self.filled(self.rng.choice(self.chosen))

    def maybe_view(self) -> bool:
        """What may be a view, and a store into it or into what it may be a view of."""
        views = [each.strip() for each in MAYBE_VIEWS.split(";")]
        stores = (
            "$y[0] = $e",
            "$y += 1.0",
            "$T[0] = $e",
            "$T[-1] += 1.0",
            "$T.sort()",
            "$y[:] = 2",
        )
        first, second = self.rng.choice(stores), self.rng.choice(stores)
        return self.filled(f"$T = {self.rng.choice(views)}\n{first}\n{second}")

    def filled(self, template: str) -> bool:
        """Write a template with names of the scope; False if it has none that fit."""
        if self.nested > 1 or not self.least:
            return False
        names: dict[str, str] = {}
        own = [each for each in self.vectors() if each.own and each.name not in self.locked]
        own = [each for each in own if each.dtype == "f64" and "?" not in each.shape]
        vectors = [each for each in own if len(each.shape) == 1 and self.at_least(each.shape[0])]
        if "c[" in template:
            vectors = [each for each in vectors if each.shape == ("n",)]
            if not any(each.name == "c" for each in self.scope.arrays):
                return False
        y = self.rng.choice(vectors) if vectors else None
        if y is None:
            return False
        same = [each for each in vectors if each.shape == y.shape]
        names |= {"y": y.name, "z": self.rng.choice(same).name, "n": y.shape[0]}
        matrices = [each for each in own if len(each.shape) == 2]
        square = [each for each in matrices if each.shape == ("n", "n")]
        for letter, known in (("a", matrices), ("q", square)):
            if f"${letter}" in template:
                if not known:
                    return False
                names[letter] = self.rng.choice(known).name
        seen = dict.fromkeys(re.findall(r"\$([TUNMfgijlb])", template))
        names |= {letter: self.name(letter.lower()) for letter in seen}
        for line in template.split("\n"):
            self.template_line(line, names, y)
        for letter in seen:
            if letter in "TUNM":
                self.scope.arrays.append(
                    Array(names[letter], "f64", y.shape if letter in "TU" else ())
                )
        return True

    def template_line(self, line: str, names: dict[str, str], y: Array) -> None:
        """Write one line of a template."""
        text = line.lstrip()
        depth, self.depth = self.depth, self.depth + (len(line) - len(text)) // 4
        if text == "BLOCK":
            with self.block():
                self.depth -= 1
                self.statements(1)
        else:
            self.line(re.sub(r"\$([a-zA-Z])", lambda found: self.hole(found[1], names, y), text))
        self.depth = depth

    def hole(self, letter: str, names: dict[str, str], y: Array) -> str:
        """What is written in a hole of a template."""
        if letter in names:
            return names[letter]
        if letter == "e":
            return self.bounded("f64", (), 1)
        if letter == "c":
            return self.condition(1)
        if letter == "v":
            return self.bounded("f64", y.shape, 1)
        return self.index(y.shape[0])
