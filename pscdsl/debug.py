"""A look inside running kernels: lines that they print, values that they record, checks."""

from pscdsl._src.language.debug import checks as checks
from pscdsl._src.language.debug import off as off
from pscdsl._src.language.debug import print as print  # noqa: A004
from pscdsl._src.language.debug import value as value
