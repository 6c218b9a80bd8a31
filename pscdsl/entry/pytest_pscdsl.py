"""The options of pytest.  Installed beside the package, so that they load without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("pscdsl")
    group.addoption(  # pyright: ignore[reportUnknownMemberType]
        "--pscdsl", action="store_true", help="check the kernels in the files that are collected"
    )
    group.addoption(  # pyright: ignore[reportUnknownMemberType]
        "--psc-checks",
        metavar="NAMES",
        help="what running kernels check: nan, inf, index, separated by commas; or off",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Load the rest where it is wanted."""
    if config.getoption("--pscdsl"):
        from pscdsl._src.plugins.pytest import NAME, Checks

        config.pluginmanager.register(Checks(config), NAME)
    if names := config.getoption("--psc-checks"):
        from pscdsl._src.plugins.pytest import switch_on

        switch_on(names, config)
