"""Special functions, sums of exponentials, and Fourier transforms."""

from __future__ import annotations

from typing import Any

from tests.derivatives.subject import Subject, subject

Z = 'c128["n m"]'


def special(code: str, **given: Any) -> Subject:
    """A function of `psc.special`, which plain NumPy does not have."""
    return subject(f"psc.special.{code}", plain=False, **given)


SUBJECTS = [
    *[
        special(f"{name}(x)", x="n", low=0.2, high=0.9)
        for name in (
            "erf erfc erfcx erfinv erfcinv ndtr log_ndtr ndtri gamma gammaln digamma i0 i0e i1 i1e "
            "expit log_expit logit entr"
        ).split()
    ],
    special("polygamma(2, x)", x="n"),
    special("multigammaln(x, 2)", x="n"),
    special("zeta(2.5, x)", x="n"),
    *[special(f"{name}(x, y)", x="n m", y="m") for name in ("betaln", "beta", "xlogy", "xlog1py")],
    special("comb(x + 3, y)", x="n m", y="m"),
    special("comb(x, y, repetition=True)", x="n m", y="m"),
    special("rel_entr(x, y)", x="n", y="n"),
    special("kl_div(x, y)", x="n", y="n"),
    special("gammainc(1.5, x)", x="n"),
    special("gammaincc(0.5, x)", x="n"),
    special("betainc(1.5, 2.5, x)", x="n", low=0.2, high=0.9),
    special("betaincc(0.5, 2.5, x)", x="n", low=0.2, high=0.9),
    special("logsumexp(x)", x="n m", low=-1.5),
    special("logsumexp(x, axis=0, keepdims=True) * x", x="n m", low=-1.5),
    special("logsumexp(x, axis=1, b=y)", x="n m", y="n m"),
    special("softmax(x, axis=0)", x="n m", low=-1.5),
    special("log_softmax(x, axis=(0, 1))", x="n m", low=-1.5),
    # Fourier transforms.
    *[subject(f"np.abs(np.fft.{name}(x)) ** 2", x="n k") for name in ("fft", "ifft", "rfft2")],
    *[
        subject(f"np.fft.{name}(x * x, norm={norm!r}).real", x=Z)
        for name in ("fft", "ifft", "fft2", "ifftn")
        for norm in ("ortho", "forward")
    ],
    *[subject(f"np.fft.rfft(x, {n}).imag * y", x="n m", y="") for n in (3, 4, "x.shape[0]")],
    *[subject(f"np.fft.irfft(x * x, {n}, axis=0)", x=Z) for n in (1, 3, 4, "x.shape[0]")],
    subject("np.fft.irfftn(np.fft.rfftn(x) ** 2, s=x.shape) * y", x="n m k", y=""),
    subject("np.fft.hfft(x, 5) ** 2", x=Z),
    subject("np.fft.ihfft(x, norm='ortho').real * y", x="n k", y="n 1"),
    subject("np.fft.fftshift(x) * np.fft.fftfreq(x.shape[0], 0.5)", x="n"),
    subject("np.fft.ifftshift(x, axes=1) * x", x="n k"),
]
