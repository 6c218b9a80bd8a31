"""Results with names, as NumPy has them: tuples whose items are attributes too."""

from __future__ import annotations

from typing import ClassVar

from pscdsl._src.ir.builder import Value


class NamedResults(tuple[Value, ...]):
    """Several results; subclasses name them."""

    __slots__ = ()
    STATIC_ATTRIBUTES: ClassVar[tuple[str, ...]] = ()
    """The names, which kernels may use."""

    def __getattr__(self, name: str) -> Value:
        if name not in self.STATIC_ATTRIBUTES:
            raise AttributeError(name)
        return self[self.STATIC_ATTRIBUTES.index(name)]


class EigResult(NamedResults):
    """What `eig` gives."""

    STATIC_ATTRIBUTES = ("eigenvalues", "eigenvectors")


class EighResult(NamedResults):
    """What `eigh` gives."""

    STATIC_ATTRIBUTES = ("eigenvalues", "eigenvectors")


class QRResult(NamedResults):
    """What `qr` gives."""

    STATIC_ATTRIBUTES = ("Q", "R")


class SVDResult(NamedResults):
    """What `svd` gives."""

    STATIC_ATTRIBUTES = ("U", "S", "Vh")


class SlogdetResult(NamedResults):
    """What `slogdet` gives."""

    STATIC_ATTRIBUTES = ("sign", "logabsdet")
