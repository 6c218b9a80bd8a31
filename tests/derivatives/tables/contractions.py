"""Products of arrays, and what is made of them."""

from __future__ import annotations

from tests.derivatives.subject import subject

SUBJECTS = [
    *[
        subject("x @ y", x=x, y=y)
        for x, y in (
            ("n", "n"),
            ("n m", "m"),
            ("n", "n m"),
            ("n m", "m k"),
            ("k n m", "m n"),
            ("n m", "k m 2"),
            ("k n m", "k m 2"),
            ("2 1 n m", "k m n"),
            ("k n m", "m"),
            ("n", "k n m"),
        )
    ],
    *[
        subject("np.dot(x, y)", x=x, y=y)
        for x, y in (("n", "n"), ("", "n"), ("n m", "k m 2"), ("n m", "m"), ("k n m", "m"))
    ],
    subject("x @ x", x="n n"),
    subject("x @ x.T @ x", x="n m"),
    subject("x @ y @ x", x="n", y="n n"),
    subject("x @ (x @ x)", x="n n"),
    subject("np.vdot(x, y)", x="n m", y="n m"),
    subject("np.inner(x, y)", x="n m", y="k m"),
    subject("np.outer(x, y)", x="n", y="m"),
    subject("np.outer(x, x) * y", x="n", y="n"),
    subject("np.kron(x, y)", x="n", y="m"),
    subject("np.kron(x, y)", x="n m", y="2 k"),
    subject("np.tensordot(x, y, 1)", x="n m", y="m k"),
    subject("np.tensordot(x, y, 2)", x="k n m", y="n m 2"),
    subject("np.tensordot(x, y, axes=([0, 2], [1, 0]))", x="n m k", y="k n"),
    subject("np.tensordot(x, y, 0)", x="n", y="m"),
    *[
        subject(f"np.einsum('{spec}', x, y)", x=x, y=y)
        for spec, x, y in (
            ("ij,jk->ik", "n m", "m k"),
            ("ij,kj->ki", "n m", "k m"),
            ("ij,ij->", "n m", "n m"),
            ("ij,ij->ij", "n m", "n m"),
            ("ii,ij->j", "n n", "n m"),
            ("i,j->ij", "n", "m"),
            ("bij,bjk->bik", "k n m", "k m 2"),
            ("...i,...i->...", "k n m", "k n m"),
            ("...ij,jk", "k n m", "m 2"),
            ("ij,i->", "n m", "n"),
            ("ij,jk->kij", "n m", "m k"),
            ("iij,jk->ik", "n n m", "m k"),
        )
    ],
    subject("np.einsum('ij->', x)", x="n m"),
    subject("np.einsum('ij->ji', x) ** 2", x="n m"),
    subject("np.einsum('ii->i', x) ** 2", x="n n"),
    subject("np.einsum('ii', x) ** 2", x="n n"),
    subject("np.einsum('ij,jk,kl->il', x, y, z)", x="n m", y="m k", z="k 2"),
    subject("np.einsum('i,i,i->i', x, x, x)", x="n"),
    subject("np.cross(x, y)", x="n 3", y="n 3"),
    subject("np.cross(x, y) * x", x="3", y="3"),
    subject("np.vecdot(x, y)", x="n m", y="n m"),
    subject("np.matvec(x, y)", x="k n m", y="k m"),
    *[subject(f"np.convolve(x, y{mode})", x="4", y="2") for mode in ("", ", 'same'", ", 'valid'")],
    subject("np.convolve(x, y)", x="k", y="m"),
    subject("np.convolve(x, x[::-1])", x="n"),
    subject("np.correlate(x, y, 'full')", x="4", y="3"),
    *[
        subject(f"psc.conv(x, y{options})", x="2 2 6", y="2 2 3", plain=False)
        for options in (
            "",
            ", strides=2",
            ", padding='same'",
            ", dilation=2",
            ", padding=((2, 1),)",
        )
    ],
    subject("psc.conv(x, y, groups=2)", x="1 4 3 3", y="2 2 2 2", plain=False),
    *[
        subject(f"psc.{name}(x, {window}) ** 2", x="1 2 6", plain=False)
        for name in ("max_pool", "avg_pool")
        for window in ("2", "3, 1", "2, 2, 'same'")
    ],
    subject("np.polyval(x, y)", x="3", y="n"),
    subject("np.polymul(x, y)", x="3", y="2"),
    subject("np.tanh(w @ np.tanh(v @ x)) @ w", w="n m", v="m k", x="k"),
    subject(
        """
def f(q, k, v):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True)) @ v
""",
        q="2 n m",
        k="2 k m",
        v="2 k 3",
    ),
]
