"""Descriptions of GPUs, so that programs compile without one: the data that the compiler needs.

The numbers are the hardware's, from NVIDIA's data sheets and the table of compute capabilities in
the CUDA C++ Programming Guide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Gpu:
    """A model of GPU; memory in bytes, bandwidth in bytes a second, clock in GHz."""

    name: str
    title: str
    """The name that the driver gives it."""
    capability: tuple[int, int]
    multiprocessors: int
    lanes: int
    """The f32 units of a multiprocessor."""
    threads: int
    """The most threads that a multiprocessor holds."""
    shared: int
    """The shared memory of a multiprocessor."""
    cache: int
    """The cache of level 2."""
    memory: int
    bandwidth: int
    clock: float

    @property
    def platform(self) -> str:
        """The platform that it belongs to."""
        return "cuda"

    @property
    def architecture(self) -> str:
        """The name of its instruction set, as PTX has it: `sm_90`."""
        major, minor = self.capability
        return f"sm_{major}{minor}"

    @property
    def config(self) -> str:
        """The description in the form that XLA reads, a `GpuTargetConfigProto` as text."""
        major, minor = self.capability
        device = {
            "threads_per_block_limit": 1024,
            "threads_per_warp": 32,
            "shared_memory_per_block": 48 << 10,
            "shared_memory_per_core": self.shared,
            "shared_memory_per_block_optin": self.shared - 1024,  # the driver keeps the rest
            "threads_per_core_limit": self.threads,
            "core_count": self.multiprocessors,
            "fpus_per_core": self.lanes,
            "block_dim_limit_x": (1 << 31) - 1,
            "block_dim_limit_y": (1 << 16) - 1,
            "block_dim_limit_z": (1 << 16) - 1,
            "memory_bandwidth": self.bandwidth,
            "l2_cache_size": self.cache,
            "clock_rate_ghz": self.clock,
            "device_memory_size": self.memory,
            "registers_per_core_limit": 1 << 16,
            "registers_per_block_limit": 1 << 16,
        }
        facts = " ".join([f"{name}: {value}" for name, value in device.items()])
        return (
            f"gpu_device_info {{ {facts} "
            f"cuda_compute_capability {{ major: {major} minor: {minor} }} }} "
            'platform_name: "CUDA" '
            f"dnn_version_info {{ major: {CUDNN[0]} minor: {CUDNN[1]} }} "
            f"runtime_version {{ major: {CUDA[0]} minor: {CUDA[1]} }} "
            f'device_description_str: "{self.title}"'
        )


CUDA: Final = 12, 8
"""The version of CUDA that the compiler assumes, and that of cuDNN."""
CUDNN: Final = 9, 10

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30

GPUS: Final = {
    gpu.name: gpu
    for gpu in (
        Gpu(
            name="h100",
            title="NVIDIA H100 80GB HBM3",
            capability=(9, 0),
            multiprocessors=132,
            lanes=128,
            threads=2048,
            shared=228 * _KIB,
            cache=50 * _MIB,
            memory=79 * _GIB,
            bandwidth=3_352_000_000_000,
            clock=1.98,
        ),
        Gpu(
            name="a100",
            title="NVIDIA A100-SXM4-80GB",
            capability=(8, 0),
            multiprocessors=108,
            lanes=64,
            threads=2048,
            shared=164 * _KIB,
            cache=40 * _MIB,
            memory=79 * _GIB,
            bandwidth=2_039_000_000_000,
            clock=1.41,
        ),
        Gpu(
            name="l4",
            title="NVIDIA L4",
            capability=(8, 9),
            multiprocessors=58,
            lanes=128,
            threads=1536,
            shared=100 * _KIB,
            cache=48 * _MIB,
            memory=22 * _GIB,
            bandwidth=300_000_000_000,
            clock=2.04,
        ),
    )
}
"""The models by name."""


def gpu_named(name: str) -> Gpu:
    """Return a model; a ValueError if there is no such one."""
    if name not in GPUS:
        raise ValueError(f"there is no target `{name}`: {', '.join(GPUS)}")
    return GPUS[name]
