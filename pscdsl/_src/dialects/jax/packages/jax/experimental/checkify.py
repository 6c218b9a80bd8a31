"""The names of `jax.experimental.checkify`: a program whose checks fail raises no error of ours."""

from typing import NamedTuple as _NamedTuple

import pscdsl as psc


class _Error(_NamedTuple):
    """The error of a function, which is none: the program fails where a check does."""


def check(pred, msg, *fmt_args, debug=False, **fmt_kwargs):
    """Claim that a condition holds."""
    psc.check(pred)


def check_error(error):
    """Raise the error, which is none."""


def checkify(f):
    """Return a function that returns an error beside its result."""
    return lambda *args, **kwargs: (_Error(), f(*args, **kwargs))
