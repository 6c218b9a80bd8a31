"""Plugins of other platforms: which are found, and what is said of those that do not fit."""

from __future__ import annotations

import sys
from pathlib import Path

import jaxlib
import pytest

from pscdsl._src.xla.device import UnsupportedDeviceError
from pscdsl._src.xla.runtime import plugins

pytestmark = pytest.mark.jaxlib

VERSION: str = getattr(jaxlib, "__version__")  # noqa: B009


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for packages, and none of the packages that are installed."""
    renamed = {
        platform: tuple(
            plugins.Package(
                f"tried-{each.distribution}",
                f"tried_{each.module}",
                each.library,
                each.extension,
            )
            for each in packages
        )
        for platform, packages in plugins.PACKAGES.items()
    }
    monkeypatch.setattr(plugins, "PACKAGES", renamed)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in [each for each in sys.modules if each.startswith("tried_")]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def installed(site: Path, number: str, version: str, *, library: bool = True) -> None:
    folder = site / "tried_jax_plugins" / f"xla_cuda{number}"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise ImportError('nobody imports this')\n")
    if library:
        (folder / "xla_cuda_plugin.so").write_bytes(b"")
    name = f"tried_jax_cuda{number}_pjrt"
    info = site / f"{name}-{version}.dist-info"
    info.mkdir()
    told = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n"
    (info / "METADATA").write_text(told)


def test_a_plugin_that_is_not_installed_is_named(site: Path) -> None:
    with pytest.raises(UnsupportedDeviceError, match=r"pip install '\.\[cuda13\]'"):
        plugins.find("cuda")
    with pytest.raises(UnsupportedDeviceError, match="pip install libtpu"):
        plugins.find("tpu")


def test_a_plugin_is_found_and_not_imported(site: Path) -> None:
    installed(site, "12", VERSION)
    package, library = plugins.find("cuda")
    assert package.distribution.endswith("cuda12-pjrt")
    assert library == site / "tried_jax_plugins" / "xla_cuda12" / "xla_cuda_plugin.so"
    assert "tried_jax_plugins.xla_cuda12" not in sys.modules


def test_the_newer_of_two_plugins_is_taken(site: Path) -> None:
    installed(site, "12", VERSION)
    installed(site, "13", VERSION)
    assert plugins.find("cuda")[0].extension == "jax_cuda13_plugin"


def test_a_plugin_of_another_jaxlib_is_refused(site: Path) -> None:
    installed(site, "13", "0.0.1")
    with pytest.raises(UnsupportedDeviceError) as refused:
        plugins.find("cuda")
    text = str(refused.value)
    assert f"tried-jax-cuda13-pjrt 0.0.1 does not fit jaxlib {VERSION}" in text
    assert f"pip install 'jax-cuda13-plugin[with-cuda]=={VERSION}'" in text
    installed(site, "12", VERSION)
    assert plugins.find("cuda")[0].distribution.endswith("cuda12-pjrt")


def test_a_package_without_its_library_is_passed_over(site: Path) -> None:
    installed(site, "13", VERSION, library=False)
    with pytest.raises(UnsupportedDeviceError, match="not installed"):
        plugins.find("cuda")
