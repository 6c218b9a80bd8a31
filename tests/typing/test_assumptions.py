"""Facts about sizes: what must be proven, and that no answer is ever wrong."""

from __future__ import annotations

import itertools
import random
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pscdsl.typing.assumptions import Assumptions, Fact, Relation, Verdict, parse_fact, refutation
from pscdsl.typing.dims import DimSyntaxError, Size, maximum, minimum, name, parse, show

n, m, k = name("n"), name("m"), name("k")


def assuming(text: str) -> Assumptions:
    """Assumptions from facts separated by commas."""
    parts = [part for part in re.split(r",(?![^(]*\))", text) if part.strip()]
    return Assumptions().assume(*itertools.chain.from_iterable(map(parse_fact, parts)))


def claim(text: str) -> Fact:
    """The only fact in a text."""
    (fact,) = parse_fact(text)
    return fact


PROVEN = [
    ("n % 8 == 0", "8*(n//8) == n"),
    ("n >= 2", "n-1 >= 1"),
    ("", "n//2 <= n"),
    ("", "n % 4 <= 3"),
    ("n % 2 == 0", "(n+4) % 2 == 0"),
    ("n % 2 == 0", "n//2 + n//2 == n"),
    ("n >= m, m >= 3", "n >= 3"),
    ("n == 2*m", "n % 2 == 0"),
    ("", "n*m >= 1"),
    ("", "min(n,m) <= n"),
    ("", "max(n,m) >= m"),
    ("", "n*(m+1) != 0"),
    ("n > m", "n != m"),
    ("", "(n+1)//2 + n//2 == n"),
    ("", "n//2*2 <= n"),
    ("", "(n-1)//2 <= n"),
    ("n % 6 == 0", "n % 3 == 0"),
    ("", "2*n+1 != 2*m"),
    ("", "n*m == m*n"),
    ("", "(n+m)*(n-m) == n*n-m*m"),
    ("n+2*p >= k", "(n+2*p-k)//2 + 1 >= 1"),
    ("n+2*p >= k, p >= 0", "(n+2*p-k)//3 + 1 >= 1"),
    ("n+2*p >= k", "(n+2*p-k)//s + 1 >= 1"),
    ("n >= m", "n*k >= m*k"),
    ("n >= m, p >= q", "n*p >= m*q"),
    ("", "n//m <= n"),
    ("", "n//m*m <= n"),
    ("", "n % m < m"),
    ("", "n % m >= 0"),
    ("n % m == 0", "n//m*m == n"),
    ("n % m == 0", "n//m >= 1"),
    ("n >= m", "n//m >= 1"),
    ("n < m", "n//m == 0"),
    ("n < m", "n % m == n"),
    ("n == m", "n//2 == m//2"),
    ("n == m*k", "n % m == 0"),
    ("n == m*k", "n//m == k"),
    ("n != 1", "n >= 2"),
    ("", "max(n,m) + min(n,m) == n+m"),
    ("", "min(n,max(n,m)) == n"),
    ("n <= m", "min(n,m) == n"),
    ("n % 2 == 0, m % 2 == 0", "(n+m) % 2 == 0"),
    ("n % 2 == 0", "n*m % 2 == 0"),
    ("n % 2 == 0", "n*n % 4 == 0"),
    ("", "n*(n+1) % 2 == 0"),
    ("n % 4 == 0, m == n//2", "m % 2 == 0"),
    ("n <= m, m <= n", "n == m"),
    ("n % 8 == 0", "n >= 8"),
    ("n % 8 == 0, n >= 9", "n >= 16"),
    ("n % 2 == 0, n % 3 == 0", "n % 6 == 0"),
    ("h % g == 0, g % 2 == 0", "h % 2 == 0"),
    ("", "n//4 == n//2//2"),
    ("", "n//8*8 + n%8 == n"),
    ("n % 2 == 1", "(n+1) % 2 == 0"),
    ("n % 2 == 1", "n//2*2 + 1 == n"),
    ("n % 3 == 1", "n % 3 != 2"),
    ("n >= 0, m >= 0", "n*m >= 0"),
    ("n >= 0", "n+1 >= 1"),
    ("n >= 0, n == 0", "n*m == 0"),
    ("n % 128 == 0, m % 128 == 0", "n*m % 16384 == 0"),
    ("", "n*n >= n"),
    ("", "(n+7)//8*8 >= n"),
    ("", "(n+7)//8*8 < n+8"),
    ("min(n,m) >= 3", "n >= 3"),
    ("max(n,m) <= 5", "n <= 5"),
    ("n*m == 12", "n <= 12"),
    ("", "(n%4)*(m%4) <= 9"),
    ("", "n*m//m == n"),
    ("", "(n*m+k)//m == n + k//m"),
    ("n >= 1, n <= 0", "n == 7"),
    ("n <= m, m <= k, k <= 8", "n*m <= 64"),
    ("t % c == 0", "t//c*c == t"),
    ("", "(n+s-1)//s*s >= n"),
]


@pytest.mark.parametrize(("facts", "text"), PROVEN)
def test_proven(facts: str, text: str) -> None:
    assumptions = assuming(facts)
    assert assumptions.proves(claim(text))
    assert assumptions.decide(claim(text)) is Verdict.YES
    assert assumptions.counterexample(claim(text)) is None
    if claim(text).relation == "==":
        assert assumptions.equal(claim(text).left, claim(text).right)


def admitted_refutation(assumptions: Assumptions, about: Fact) -> dict[str, int]:
    """What a counterexample is taken from: sizes of the names of the facts, too."""
    found = refutation(assumptions.facts, about, assumptions.lower_bound)
    assert found is not None
    assert assumptions.admits(found), f"{assumptions} |- {about}: {found} is not admitted"
    return found


@pytest.mark.parametrize(
    ("facts", "text", "sizes"),
    [
        ("", "n == m", {"m": 1, "n": 2}),
        ("", "n % 8 == 0", {"n": 1}),
        ("", "n % 2 == 0", {"n": 1}),
        ("", "n >= k", {"k": 2, "n": 1}),
        ("n >= 0", "n >= 1", {"n": 0}),
        ("n >= -5", "n >= 1", {"n": 0}),
        ("n % 128 == 0, m % 128 == 0", "n == m", {"m": 128, "n": 256}),
        ("n >= 1000", "n <= 2000", {"n": 2001}),
        ("", "n <= 4096", {"n": 4097}),
        ("n == 2*m", "n >= 3", {"n": 2}),
        ("n == 3*m, k == n+1", "k <= 9", {"k": 10}),
        ("n == m+k", "k+m >= n+1", {"k": 1, "m": 1, "n": 2}),
        ("", "n*m*k <= 60", {"k": 4, "m": 4, "n": 4}),
        ("n >= 2*m", "k == 1", {"k": 2}),
        ("m >= 0", "n//m <= n", {"m": 0, "n": 1}),
        ("", "n != 5", {"n": 5}),
        ("n % 3 == 1, n % 5 == 2, n % 7 == 3", "n == 52", {"n": 157}),
        ("n >= 70000", "n <= 100000", {"n": 100001}),
    ],
)
def test_refuted_by_the_smallest_sizes(facts: str, text: str, sizes: dict[str, int]) -> None:
    assumptions = assuming(facts)
    assert assumptions.decide(claim(text)) is Verdict.NO
    found = assumptions.counterexample(claim(text))
    assert found is not None
    assert not claim(text).holds(found)
    assert found.items() <= admitted_refutation(assumptions, claim(text)).items()
    if "100000" not in text:
        assert found == sizes


@pytest.mark.parametrize(
    ("facts", "verdict"),
    [
        ("", Verdict.YES),
        ("n >= 2, n <= 1", Verdict.NO),
        ("n < m, m < n", Verdict.NO),
        ("n % 2 == 0, n % 2 == 1", Verdict.NO),
        ("n == m+1, m == n+1", Verdict.NO),
        ("n == 0", Verdict.NO),
        ("n == 0, n >= 0", Verdict.YES),
        ("n % 64 == 0, m == n//2", Verdict.YES),
    ],
)
def test_consistency(facts: str, verdict: Verdict) -> None:
    assert assuming(facts).consistent() is verdict


@pytest.mark.parametrize(
    ("facts", "before", "after"),
    [
        ("n % 8 == 0", "n//8*8", "n"),
        ("n % 8 == 0", "n%8", "0"),
        ("n % 8 == 0", "n%4+m", "m"),
        ("n % 8 == 0", "n//8*8*k+m", "k*n+m"),
        ("n <= m", "min(n,m)", "n"),
        ("n <= m", "max(n,m,k)", "max(k,m)"),
        ("n == m", "n-m", "0"),
        ("n == 2*m", "n//2", "m"),
        ("n < m", "n//m", "0"),
        ("n < m", "n%m", "n"),
        ("", "n//8*8", "8*(n//8)"),
        ("m >= 2", "n+1", "n+1"),
    ],
)
def test_simplification(facts: str, before: str, after: str) -> None:
    assert show(assuming(facts).simplify(parse(before))) == after


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("n%8==0", ["n % 8 == 0"]),
        ("n>=2", ["n >= 2"]),
        ("2 <= n < m", ["n >= 2", "n < m"]),
        ("n > 2", ["n > 2"]),
        ("n + 1 != m", ["n+1 != m"]),
        ("n // 2 % 3 == 0", ["(n//2) % 3 == 0"]),
        ("n > m >= k", ["m < n", "k <= m"]),
    ],
)
def test_facts_are_read_and_shown(text: str, shown: list[str]) -> None:
    facts = parse_fact(text)
    assert [str(fact) for fact in facts] == shown
    assert tuple(itertools.chain.from_iterable(parse_fact(str(f)) for f in facts)) == facts


@pytest.mark.parametrize(
    ("text", "offset"), [("n", 1), ("n = 2", 2), ("n <= ", 4), ("n <= m/2", 6), ("<= n", 0)]
)
def test_malformed_facts_say_where(text: str, offset: int) -> None:
    with pytest.raises(DimSyntaxError) as caught:
        parse_fact(text)
    assert caught.value.offset == offset


def test_a_zero_divisor_does_not_hold() -> None:
    fact = claim("n // m == n // m")
    assert not fact.holds({"n": 1, "m": 0})
    assert assuming("").proves(fact)
    assert assuming("m >= 0").decide(fact) is Verdict.NO
    assert not assuming("m >= 0, n % m == 0").admits({"n": 0, "m": 0})


def test_an_equality_too_large_to_rearrange_is_no_definition() -> None:
    enormous = 2**63
    assumptions = Assumptions().assume(Fact("==", enormous * n - enormous * m, m - n))
    found = assumptions.counterexample(claim("n >= 2"))
    assert found == {"n": 1}


def test_every_definition_of_a_name_makes_sizes_equal() -> None:
    facts = assuming("n == d*p, n == m*q, q == d*r")
    d, p, q, r = map(name, "dpqr")
    for count in (1, 2, 3):
        whole = _power(n, count)
        assert facts.equal(_power(d * p, count), whole)
        assert facts.equal(_power(m * q, count), whole)
        assert facts.equal(_power(m * d * r, count), whole)
        assert not facts.equal(_power(d * q, count), whole)


def _power(size: Size, count: int) -> Size:
    return size if count == 1 else size * _power(size, count - 1)


def test_assumptions_are_values() -> None:
    base = assuming("n >= 2")
    extended = base.assume(claim("m == n"))
    assert base.facts == (claim("n >= 2"),)
    assert base.assume(claim("n >= 2")) is base
    assert extended == assuming("n >= 2, m == n")
    assert len({extended, assuming("n >= 2, m == n"), base}) == 2


RELATIONS: list[Relation] = ["==", "!=", "<=", "<"]
BOX = 7


def random_size(source: random.Random, names: list[Size], depth: int) -> Size:
    """A small random size; the divisors are sometimes names."""
    if depth == 0 or source.random() < 0.25:
        return source.choice(names) if source.random() < 0.75 else source.randint(0, 6)
    left = random_size(source, names, depth - 1)
    match source.randrange(9):
        case 0 | 1 | 2:
            return left + random_size(source, names, depth - 1)
        case 3:
            return left - random_size(source, names, depth - 1)
        case 4:
            return left * random_size(source, names, depth - 1)
        case 5:
            return left // source.choice([2, 3, 4, 8, *names])
        case 6:
            return left % source.choice([2, 3, 4, 8, *names])
        case 7:
            return minimum(left, random_size(source, names, depth - 1))
        case _:
            return maximum(left, random_size(source, names, depth - 1))


def random_fact(source: random.Random, names: list[Size]) -> Fact:
    """A random relation, of a kind that programs state or need."""
    if source.random() < 0.3:
        size = source.choice(names)
        modulus = source.choice([2, 3, 4])
        return source.choice(
            [
                Fact("==", size % modulus, source.choice([0, 0, 1])),
                Fact("<=", source.randint(0, 4), size),
                Fact("<=", source.choice(names), size),
            ]
        )
    left, right = random_size(source, names, 2), random_size(source, names, 2)
    return Fact(source.choice(RELATIONS), left, right)


def admitted(assumptions: Assumptions, names: list[str]) -> list[dict[str, int]]:
    """The admitted sizes in a small box, smallest first."""
    points = (dict(zip(names, p, strict=True)) for p in itertools.product(range(BOX), repeat=3))
    found = [env for env in points if assumptions.admits(env)]
    return sorted(found, key=lambda env: (sum(env.values()), [env[key] for key in sorted(env)]))


def judge(seed: int) -> Verdict:
    """Decide a random claim, check the answer by brute force, and return it."""
    source = random.Random(seed)
    names: list[Size] = [k, m, n]
    facts = [random_fact(source, names) for _ in range(source.randint(0, 3))]
    assumptions = Assumptions().assume(*facts)
    about = random_fact(source, names)
    mentioned = sorted(about.names().union(*(fact.names() for fact in facts)))
    verdict = assumptions.decide(about)
    points = admitted(assumptions, ["k", "m", "n"])
    # Names that nothing mentions stay at their smallest, 1.
    points = [p for p in points if all(p[key] == 1 for key in p.keys() - set(mentioned))]
    refuting = [{key: env[key] for key in mentioned} for env in points if not about.holds(env)]
    found = assumptions.counterexample(about)
    context = f"{assumptions} |- {about}"
    if verdict is Verdict.YES:
        assert not refuting, f"{context}: proven, but refuted by {refuting[0]}"
        assert found is None, f"{context}: proven, but refuted by {found}"
    if refuting:
        assert verdict is Verdict.NO, f"{context}: {verdict}, but refuted by {refuting[0]}"
    if found is not None:
        assert not about.holds(found), f"{context}: {found} does not refute"
        full = admitted_refutation(assumptions, about)
        assert found == {key: full[key] for key in sorted(about.names())}, context
        assert sorted(full) == mentioned, context
        if refuting and sum(full.values()) <= BOX:
            assert full == refuting[0], f"{context}: {full} is not the smallest"
    if assumptions.consistent() is Verdict.NO:
        assert not points, f"{assumptions}: inconsistent, but {points[0]} is admitted"
    for size in (about.left, about.right):
        simplified = assumptions.simplify(size)
        for env in points[:20]:
            same = Fact("==", size, simplified)
            assert same.holds(env) or not Fact("==", size, size).holds(env), context
    return verdict


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_no_answer_is_wrong(seed: int) -> None:
    judge(seed)


def test_few_answers_are_unknown() -> None:
    verdicts = [judge(seed) for seed in range(300)]
    assert verdicts.count(Verdict.UNKNOWN) <= len(verdicts) // 20


def test_hard_questions_end() -> None:
    sizes = [name(f"d{i}") for i in range(12)]
    facts = [Fact("<=", a * b, c + 40) for a, b, c in itertools.combinations(sizes[:7], 3)]
    facts += [Fact("==", (a * b) % c, 1) for a, b, c in itertools.combinations(sizes[4:10], 3)]
    assumptions = Assumptions().assume(*facts)
    start = time.perf_counter()
    assumptions.decide(Fact("<=", sizes[0] * sizes[1] * sizes[2], sizes[3] // sizes[4] + 9))
    assert time.perf_counter() - start < 10
