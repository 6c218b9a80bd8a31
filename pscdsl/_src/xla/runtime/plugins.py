"""Compilers and drivers of other platforms than the CPU, which come as PJRT plugins.

A plugin is a shared library in a package of its own; the extra `cuda13` installs that of NVIDIA's
GPUs.  It is found without being imported: its Python half needs jax, its library does
not.  A plugin belongs to one version of jaxlib, so another one is refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import Any, Final

from pscdsl._src.support.processes import require
from pscdsl._src.xla.device import UnsupportedDeviceError
from pscdsl._src.xla.runtime import boot


@dataclass(frozen=True)
class Package:
    """A package that brings the library of a platform."""

    distribution: str
    """The distribution to install; its version must equal jaxlib's."""
    module: str
    library: str
    """The file in the module's folder."""
    extension: str = ""
    """The module with the routines for linear algebra, if there is one."""


PACKAGES: Final[Mapping[str, tuple[Package, ...]]] = {
    "cuda": (
        Package(
            "jax-cuda13-pjrt", "jax_plugins.xla_cuda13", "xla_cuda_plugin.so", "jax_cuda13_plugin"
        ),
        Package(
            "jax-cuda12-pjrt", "jax_plugins.xla_cuda12", "xla_cuda_plugin.so", "jax_cuda12_plugin"
        ),
    ),
    "tpu": (Package("libtpu", "libtpu", "libtpu.so"),),
}
"""The packages for each platform; the first that is installed is taken."""
_INSTALL: Final = {
    "cuda": "in a checkout of pscdsl, pip install '.[cuda13]', or '.[cuda12]' for older drivers, "
    "or '.[cuda13-compiler]' to compile for other machines",
    "tpu": "pip install libtpu",
}


def find(platform: str) -> tuple[Package, Path]:
    """Find the package of a platform and its library, or raise `UnsupportedDeviceError`."""
    other: list[str] = []
    for package in PACKAGES[platform]:
        try:
            spec = find_spec(package.module)
            installed = version(package.distribution)
        except (ModuleNotFoundError, PackageNotFoundError):
            continue
        folders = [*(spec.submodule_search_locations or ())] if spec is not None else []
        library = next((p for f in folders if (p := Path(f, package.library)).is_file()), None)
        if library is None:
            continue
        if platform == "cuda" and installed != _jaxlib():
            other.append(f"{package.distribution} {installed}")
            continue
        return package, library
    if other:
        raise UnsupportedDeviceError(
            f"{' and '.join(other)} does not fit jaxlib {_jaxlib()}, whose version it must have: "
            f"pip install 'jax-cuda13-plugin[with-cuda]=={_jaxlib()}'"
        )
    raise UnsupportedDeviceError(
        f"the plugin for platform `{platform}` is not installed: {_INSTALL[platform]}"
    )


def _jaxlib() -> str:
    return str(boot.untyped("version").__version__)


_interfaces: Final[dict[str, Any]] = {}
_loading: Final = RLock()


def load(platform: str) -> Any:
    """Return the C interface of a platform's plugin, loaded at the first request.

    Return None if other code has loaded it in this process, as a jax with GPUs does.
    """
    require()
    with _loading:
        if platform not in _interfaces:
            _interfaces[platform] = _load(platform)
        return _interfaces[platform]


def _load(platform: str) -> Any:
    package, library = find(platform)
    boot.boot()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # the plugin's own logger reports each step
    made = None
    if not boot.xla.pjrt_plugin_loaded(platform):
        made = boot.xla.load_pjrt_plugin_dynamically(platform, str(library))
    if not boot.xla.pjrt_plugin_initialized(platform):
        boot.xla.initialize_pjrt_plugin(platform)
    if package.extension and made is not None:
        _register_routines(made, package.extension)
    return made


def _register_routines(interface: Any, extension: str) -> None:
    """Make the routines for linear algebra available as custom calls."""
    try:
        native = import_module(f"{extension}.cuda_plugin_extension")
    except ImportError:
        return  # kernels without linear algebra compile; XLA names the routine that it lacks
    xla = boot.xla
    xla.register_custom_type_handler("CUDA", partial(native.register_custom_type, interface))
    xla.register_custom_call_handler("CUDA", partial(native.register_custom_call_target, interface))
    for name, value in native.ffi_types().items():
        xla.register_custom_type(name, value, platform="CUDA")
    for name, value in native.ffi_handlers().items():
        xla.register_custom_call_target(name, value, platform="CUDA", api_version=1)
    for name in ("gpu_solver", "gpu_linalg"):
        for target, handler, interface_version in boot.untyped(name).registrations()["CUDA"]:
            xla.register_custom_call_target(
                target, handler, platform="CUDA", api_version=interface_version
            )


def versions(platform: str) -> tuple[str, ...]:
    """Return the versions of a platform's plugin, its libraries and its driver."""
    package, _ = find(platform)
    found = [f"{package.distribution} {version(package.distribution)}"]
    if package.extension:
        try:
            native = import_module(f"{package.extension}._versions")
        except ImportError:
            return tuple(found)
        for name in sorted(vars(native)):
            if name.endswith("_get_version"):
                found.append(f"{name.removesuffix('_get_version')} {_version(native, name)}")
    return tuple(found)


def _version(native: Any, name: str) -> str:
    try:
        return str(getattr(native, name)())
    except Exception:  # the library is not there
        return "none"


def client(platform: str, options: Mapping[str, Any], service: Any = None) -> Any:
    """Return a client of a platform whose plugin is loaded, of several processes by a `service`.

    Raise `UnsupportedDeviceError` if this machine has no such device.
    """
    try:
        return boot.xla.make_c_api_client(platform, options, service)
    except boot.jax.JaxRuntimeError as problem:
        reason = str(problem).partition("\n")[0]
        raise UnsupportedDeviceError(
            f"this machine has no device of platform `{platform}`: {reason}"
        ) from None
