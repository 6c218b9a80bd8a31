"""Functions of JAX whose shapes are checked: what counts as right."""

from pscdsl._src.checker.check import check_source

UNION = 'Float[Array, "n"] | Float[Array, ""]'


def counted(parameters: int) -> str:
    """The reason why a function of so many unions is not followed."""
    given = ", ".join(f"x{number}: {UNION}" for number in range(parameters))
    text = f"import jax\nfrom jaxtyping import Array, Float\n\ndef f({given}):\n    return x0\n"
    (found,) = check_source(text, "unions.py").annotated
    return found.unknown


def test_a_function_is_right_only_if_all_alternatives_were_tried() -> None:
    assert counted(4) == ""
    assert "32 combinations" in counted(5)
