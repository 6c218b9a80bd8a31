"""Functions of complex numbers, holomorphic and not."""

from __future__ import annotations

from tests.derivatives.subject import subject

Z, W = 'c128["n"]', 'c128["m n"]'
SUBJECTS = [
    *[subject(f"x {sign} y", x=Z, y=W) for sign in ("+", "-", "*", "/")],
    subject("x * y", x=Z, y="c128"),
    subject("np.conj(x) * x", x=Z),
    subject("x.real * x.imag", x=Z),
    subject("np.abs(x)", x=Z),
    subject("np.abs(x) ** 2 + x.imag", x=Z),
    subject("np.angle(x)", x=Z),
    subject("np.abs(x * x - y)", x=Z, y="c128"),
    subject("(x * np.conj(y)).real", x=Z, y=Z),
    subject("1j * x + 2 * np.conj(x)", x=Z),
    *[
        subject(f"np.{name}(x)", x=Z)
        for name in "exp log sqrt sin cos tan sinh cosh tanh square reciprocal log1p expm1".split()
    ],
    subject("x ** 2", x=Z),
    subject("x ** 3 + x ** -1", x=Z),
    subject("x ** y", x=Z, y="c128"),
    subject("np.exp(1j * x.astype(np.complex128))", x="n"),
    subject("np.abs(np.exp(1j * (x + 0j)) + y)", x=Z, y="c128"),
    subject("x.astype(np.complex128) + 1j * y", x="n", y=Z),
    subject("np.sum((x + 1j * y) ** 2, axis=0).real", x=W, y=Z),
    subject("x * y", x=Z, y=Z),
    subject("np.where(x.real > 1, x, 2 * np.conj(x))", x=Z),
    subject("np.sum(x, axis=0)", x=W),
    subject("np.mean(x)", x=W),
    subject("np.prod(x)", x=Z),
    subject("np.cumsum(x) * x", x=Z),
    subject("np.cumprod(x)", x=Z),
    subject("np.var(x)", x=Z),
    subject("x @ y", x=W, y=Z),
    subject("np.vdot(x, y)", x=Z, y=Z),
    subject("np.einsum('ij,kj->ik', x, np.conj(y))", x=W, y='c128["k n"]'),
    subject("np.outer(x, np.conj(x))", x=Z),
    subject("x[i] * x[0]", x=Z, i='i32["4"]', values={"i": [0, 2, 2, 1]}),
    subject("psc.update(x, 1, y, 'multiply')", x='c128["2"]', y="c128"),
    subject("np.concatenate([x, np.conj(x)])", x=Z),
    subject("np.real(np.fft.fft(x))", x="n"),
    subject("np.abs(np.fft.fft(x)) ** 2", x=Z),
    subject("np.fft.ifft(x * np.fft.fft(y))", x=Z, y=Z),
    subject("np.fft.irfft(np.fft.rfft(x) ** 2, x.shape[0])", x="n"),
    subject("np.fft.fft2(x).imag", x=W),
    subject("x.astype(np.complex128) * y", x="n", y=Z),
    subject("np.sin(x) / x", x=Z),
]
