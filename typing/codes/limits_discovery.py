"""PSC945 to PSC947: what keeps `pscdsl discover` from finding a signature."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class ObjectParameter(Diagnostic, code="PSC945"):
    """A parameter is an object or a dict, and what is in it is not known.

    The arguments of a kernel are arrays, static values and trees of them.  A function that takes
    the attributes or items of a parameter of no declared class may be pure, but nothing says
    what these are.  `pscdsl discover` reports
    it; in a kernel every parameter has a type.

    ## No example

    `check` never reports it: a kernel declares the types of its parameters.
    """

    name: str
    how: str
    attributes: tuple[str, ...]

    def message(self) -> str:
        """Which parameter, and how it is used."""
        if self.how == "default":
            return f"the default of `{self.name}` is no array, number or string"
        return f"`{self.name}` is used as {'a dict' if self.how == 'dict' else 'an object'}"

    def label(self) -> str:
        """What is used of it."""
        return ", ".join(f"`.{each}`" for each in self.attributes[:4])

    def help(self) -> str:
        """What to write."""
        if self.how == "default":
            return "give it in the call, or declare a record class for it"
        if self.how == "dict":
            return (
                f"pass the arrays of `{self.name}` themselves, or a `psc.Record` with a field each"
            )
        return f"declare a `psc.Record` with these fields as the type of `{self.name}`"


class OpenParameters(Diagnostic, code="PSC946"):
    """A function takes any number of arguments, `*args` or `**options`.

    Each parameter of a kernel has one type; a tuple of any length is one argument.  `pscdsl
    discover` reports it; `check` reports such a kernel as PSC105.

    ## No example

    `check` has its own code for a parameter without a type.
    """

    name: str

    def message(self) -> str:
        """Which parameter."""
        return f"`{self.name}` takes any number of arguments"

    def help(self) -> str:
        """What to write."""
        if self.name.startswith("**"):
            return "name the parameters that are used"
        return f"take one tuple: `{self.name.lstrip('*')}: tuple[f32, ...]`"


class SearchEnded(Diagnostic, code="PSC947"):
    """No signature was found within the number of trials that a function is given.

    `pscdsl discover` bounds its work for each function.  A function that it gives up on may well
    be PSC: write the types of its parameters, and `pscdsl check` answers for them.

    ## No example

    Which functions are beyond the search changes as the search gets better.
    """

    function: str
    trials: int

    def message(self) -> str:
        """How far it went."""
        return f"no signature of `{self.function}` was found in {self.trials} trials"

    def help(self) -> str:
        """What to write."""
        return "annotate its parameters with the types that are meant, and check it"
