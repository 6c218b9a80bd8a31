"""Random statements of plain NumPy that read what a mask selects, and mix dtypes."""

from __future__ import annotations

from tests.fuzz.numpy_containers import Containers
from tests.fuzz.numpy_values import Array, Shape


class Masks(Containers):
    """Writes statements with masks on the right side, too."""

    def enable(self) -> None:
        """Choose statements."""
        super().enable()
        if self.chance(0.4):
            self.enabled += [self.selected] * self.rng.choice((1, 3, 9))
        if self.chance(0.3):
            self.enabled += [self.summed] * self.rng.choice((1, 3))
        if self.chance(0.3):
            self.enabled += [self.mixed] * self.rng.choice((1, 3))

    def of_mask(self, dtype: str, shape: Shape, mask: str, depth: int = 1) -> str:
        """Elements that a mask selects, and functions of them."""
        same = [each.name for each in self.vectors() if each.dtype == dtype and each.shape == shape]
        text = f"{self.rng.choice(same)}[{mask}]"
        if not depth or self.chance(0.2):
            return text
        other = self.of_mask(dtype, shape, mask, depth - 1)
        number = self.bounded(dtype, (), 1)
        options = [f"{text} + {other}", f"{other} - {text}", f"np.maximum({text}, {other})"]
        options += [f"{text} + ({number})", f"({number}) - {text}", f"np.abs({other})", f"-{text}"]
        options += [f"np.where({text} > {number}, {other}, {text})", f"({other}) % 5"]
        options += [f"np.minimum({number}, {text})", f"{text}.copy()", f"{text} * 2"]
        return self.rng.choice(options)

    def masked_array(self) -> tuple[Array, str] | None:
        """An array, and a mask of its shape, which may have a name."""
        of = self.pick(self.vectors())
        if of is None or "?" in of.shape:
            return None
        mask = self.mask(of.shape)
        if self.chance(0.5):
            name = self.define("bool_", of.shape, letters="m")
            self.line(f"{name} = {mask}")
            mask = name
        return of, mask

    def selected(self) -> bool:
        """A store at a mask, of what the mask selects."""
        found = self.masked_array()
        if found is None:
            return False
        of, mask = found
        value = self.of_mask(of.dtype, of.shape, mask)
        if self.chance(0.3):
            name = self.name("st")
            self.line(f"{name} = {value}")
            if self.chance(0.4):
                self.line(f"{of.name}[...] = {self.bounded(of.dtype, of.shape)}")
            value = name
        return self.line(f"{of.name}[{mask}] = np.clip({value}, -9, 9)")

    def summed(self) -> bool:
        """A number of what a mask selects."""
        found = self.masked_array()
        if found is None:
            return False
        of, mask = found
        value = self.of_mask(of.dtype, of.shape, mask)
        other = self.of_mask(of.dtype, of.shape, mask, 0)
        ways = (f"np.sum({value})", f"({value}).sum()", f"({value}) @ {other}")
        counts = (f"len({value})", f"{other}.size", f"np.count_nonzero({value})")
        text = self.rng.choice((*ways, *(f"{way} + {self.rng.choice(counts)}" for way in ways)))
        name = self.define(of.dtype, ())
        return self.line(f"{name} = ({text}) % 7")

    def mixed(self) -> bool:
        """Floats and an integer, or truth values, that meet."""
        of = self.pick([each for each in self.vectors() if each.dtype == "f64"])
        if of is None or "?" in of.shape:
            return False
        number, whole = self.bounded("i64", (), 1), self.array("f64", of.shape, 1)
        sign = self.rng.choice(("+", "-", "*"))
        options = [f"({whole}) {sign} ({number})", f"({number}) {sign} ({whole})"]
        options += [f"np.minimum({whole}, {number})", f"1.0 * ({number}) - ({whole})"]
        options += [f"np.where({self.mask(of.shape)}, {whole}, {number})"]
        return self.line(f"{of.name}[...] = np.clip({self.rng.choice(options)}, -9, 9)")
