"""Random programs on the devices of meshes, their derivatives among them.

`python -m tests.campaign meshes --programs 2000` tries many. Parameters and results are placed at
random, values inside of programs too. The devices are threads, and for some programs XLA's.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import os
import random
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np

from pscdsl._src.analysis.verify import verify
from pscdsl._src.frontend.definitions import Excluded
from pscdsl._src.interpreters.replay import closed, has_tangent
from pscdsl._src.ir.builder import Builder, Program, Value
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Var, evaluate, walk
from pscdsl._src.primitives.collectives import PlaceAlong
from pscdsl._src.primitives.control import Control
from pscdsl._src.primitives.regions import Nesting
from pscdsl._src.transforms.linearize import linearize
from pscdsl._src.transforms.partition import Partitioned, partition
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.codes.limits import NoRule
from pscdsl.typing.codes.placements import AxesDiffer, NotPartitioned, UnequalPieces
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import F32, F64
from pscdsl.typing.placements import Placement
from pscdsl.typing.signatures import Choice
from tests.campaign.campaign import Campaign, deep_and_quiet
from tests.campaign.outcomes import Outcome
from tests.fuzz import laws
from tests.fuzz.derived import WITHOUT_DERIVATIVES
from tests.fuzz.on_each_programs import on_each_program
from tests.fuzz.programs import generate
from tests.fuzz.smooth_programs import SmoothProgram
from tests.support.widening import Widening
from tests.transforms.devices import run

NDArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]
MESHES: Final[tuple[dict[str, int], ...]] = (
    {"data": 1},
    {"data": 2},
    {"data": 3},
    {"data": 4},
    {"data": 2, "model": 2},
    {"data": 2, "model": 1},
    {"data": 3, "model": 2},
)
ON_XLA: Final = 8
"""One seed of so many is tried on XLA's devices too, if the process has them."""
ROUNDING: Final = frozenset(
    "reduce dot_general cumulative conv general_conv fft cholesky solve_triangular eigh svd qr lu "
    "map_reduce associative_scan linear_recurrence scatter".split()
)
"""The primitives whose results may differ by rounding where the shapes of operands do."""


class InOrder(SmoothProgram):
    """A program whose rows are combined by associative functions only, in any grouping."""

    def combination(
        self, program: Program, reach: Sequence[Value], rows: Sequence[ArrayType], depth: int
    ) -> tuple[Block, tuple[Value, ...]]:
        """Sums, the last row, or affine maps one after the other."""
        with program.inside() as here:
            params = [here.parameter(each) for each in (*rows, *rows)]
            first, second = params[: len(rows)], params[len(rows) :]
            kind = self.rng.randrange(3)
            if kind == 0:
                results = second
            elif kind == 1 and len(rows) == 2 and len({*rows}) == 1 and rows[0].dtype is F32:
                (a, b), (c, d) = first, second
                results = [a * c, b * c + d]
            else:
                results = [self.sum(x, y) for x, y in zip(first, second, strict=True)]
            return here.finish(params, results)


class Trial:
    """One program on one mesh, all of whose choices come from a seed."""

    def __init__(self, seed: int, size: int) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.size = size
        self.mesh = self.rng.choice(MESHES)
        self.along: dict[str, tuple[str, ...]] = {}
        """The axes of the mesh along which a size is cut in most arrays."""

    # Programs.

    def function(self) -> Function | None:
        """A program of text or of equations, half of them with f64 in place of other floats."""
        if self.rng.random() < 0.5:
            function: Function | None = InOrder(self.seed).function()
        else:
            function = self.of_text()
        if function is None or self.rng.random() < 0.3:
            return function
        if any(each.primitive.name in WITHOUT_DERIVATIVES for each in walk(function.body)):
            return function
        return Widening(bounded=True).function(function)

    def of_text(self) -> Function | None:
        """A program of text, for one of the choices that its signature leaves."""
        kernel = laws.definition(generate(self.rng, self.size))
        choices = kernel.signature.choices() or []
        for choice in self.rng.sample(choices, len(choices)):
            try:
                return kernel.instance(choice)
            except Excluded:
                continue
        return None

    def backward(self, function: Function) -> Function:
        """The results of a program, and the cotangents of its parameters."""
        block = function.body
        active = tuple(map(has_tangent, block.in_types))
        wanted = [type_ for type_ in block.out_types if has_tangent(type_)]
        count = len(block.params)

        def build(here: Builder, params: list[Value]) -> list[Value]:
            results, linear = linearize(here, block, params[:count], active)
            return [*results, *linear.backward(here, params[count:])]

        body = closed(function.facts, [*block.in_types, *wanted], build)
        return replace(function, body=body, parameters=(), result=None, origins={})

    # Placements.

    def placement(self, of: ArrayType, share: float) -> Placement:
        """A placement of an array, in which a share of the axes that have names is cut."""
        axes: list[tuple[str, ...]] = []
        left = [*self.mesh]
        for size in of.shape:
            along: tuple[str, ...] = ()
            if isinstance(size, Dim) and self.rng.random() < share:
                chosen = self.rng.sample(left, self.rng.randrange(min(2, len(left)) + 1))
                usual = self.along.setdefault(str(size), tuple(chosen or left[:1]))
                along = usual if self.rng.random() < 0.8 else tuple(chosen)
                along = along if {*along} <= {*left} else ()
            left = [name for name in left if name not in along]
            axes.append(along)
        return Placement(tuple(axes))

    def placed(self, block: Block, share: float) -> Block:
        """A block with some of its values placed."""
        known: dict[Atom, Atom] = {}
        equations: list[Equation] = []
        for each in block.equations:
            inputs = tuple([known.get(atom, atom) for atom in each.inputs])
            primitive = each.primitive
            if isinstance(primitive, Control):
                primitive = primitive.with_blocks(
                    [
                        region.block
                        if region.nesting is Nesting.NEVER
                        else self.placed(region.block, share)
                        for region in primitive.layout.regions
                    ]
                )
            equations.append(Equation(primitive, inputs, each.outputs, each.span))
            for var in each.outputs:
                if self.rng.random() < share:
                    placement = self.placement(var.type, 0.7)
                    new = Var(var.type)
                    equations.append(Equation(PlaceAlong(placement.axes), (var,), (new,)))
                    known[var] = new
        results = tuple([known.get(atom, atom) for atom in block.results])
        return Block(block.params, tuple(equations), results)

    def sizes(self, function: Function) -> dict[str, int] | None:
        """Sizes that the preconditions admit, and that have equal pieces."""
        pieces = int(np.prod([*self.mesh.values()]))
        for _ in range(60):
            sizes = {
                name: pieces * self.rng.randrange(1, 3)
                if self.rng.random() < 0.9
                else self.rng.randrange(1, 6)
                for name in function.dims
            }
            sizes |= {axis: self.mesh.get(axis, 1) for axis in function.mesh}
            if all(fact.holds(sizes) for fact in function.facts.facts):
                return sizes
        return None

    # Runs.

    def outcome(self) -> Outcome:
        """What becomes of the program."""
        row = "programs"
        try:
            function = self.function()
        except Failure as failure:  # other campaigns look at what is refused
            return Outcome("not run", row, detail=failure.diagnostics[0].code)
        if function is None:
            return Outcome("not run", row)
        if self.rng.random() < 0.4:
            function = replace(function, body=self.placed(function.body, 0.1))
        if self.rng.random() < 0.4:
            row = "gradients"
            try:
                function = self.backward(function)
            except Failure as failure:
                if all(isinstance(x, NoRule) or x.code in UNDERIVED for x in failure.diagnostics):
                    return Outcome("not run", row)
                raise
        sizes = self.sizes(function)
        if sizes is None:
            return Outcome("not run", row)
        arguments = [self.placement(each, 0.6) for each in function.body.in_types]
        results = [
            self.placement(each, 0.5) if self.rng.random() < 0.3 else None
            for each in function.body.out_types
        ]
        shown = f"{function}\n{[*map(str, arguments)]} -> {[*map(str, results)]} at {sizes}, "
        shown += f"{self.mesh}"
        try:
            program = partition(function, arguments, results, tuple(self.mesh))
            verify(program.function)
            program.sizes(sizes, self.mesh)
        except Failure as failure:
            kinds = [type(each).__name__ for each in failure.diagnostics]
            allowed = (AxesDiffer, UnequalPieces, NotPartitioned)
            if all(isinstance(each, allowed) for each in failure.diagnostics):
                return Outcome("refused", row, detail=", ".join(kinds))
            return Outcome("wrong", row, problem=f"{kinds}: {failure}", text=shown)
        except Exception as error:
            return Outcome("wrong", row, problem=f"{type(error).__name__}: {error}", text=shown)
        operands = [laws.array(self.rng, each, sizes) for each in function.body.in_types]
        problem = self.compared(function, program, sizes, operands)
        if problem is None:
            return Outcome("ill-conditioned", row)
        if problem:
            return Outcome("wrong", row, problem=problem, text=shown)
        names = {each.primitive.name for each in walk(program.function.body)}
        met = [name for name in names if name in COLLECTIVES]
        detail = "with collectives" if met else "in pieces" if program.cut else "whole"
        if self.is_on_xla:
            detail += ", on XLA's devices too"
        return Outcome("equal", row, detail=detail)

    @property
    def is_on_xla(self) -> bool:
        """Whether the program is run on XLA's devices too."""
        return self.seed % ON_XLA == 0 and "PSCDSL_DEVICES" in os.environ

    def compared(
        self,
        function: Function,
        program: Partitioned,
        sizes: Mapping[str, int],
        operands: Sequence[NDArray],
    ) -> str | None:
        """What differs; empty if nothing does, None if what differs is ill-conditioned."""
        with np.errstate(all="ignore"):
            wanted = [np.asarray(x) for x in evaluate(function, sizes, operands)]
        runs: dict[str, Callable[..., list[NDArray]]] = {"the devices": run}
        if self.is_on_xla:
            runs["XLA's devices"] = on_xla
        exact = {each.primitive.name for each in walk(function.body)}.isdisjoint(ROUNDING)
        made = [var.type for each in walk(function.body) for var in each.outputs]
        dtypes = {each.dtype.name for each in (*function.body.in_types, *made)}
        coarsest = max([laws.TOLERANCE.get(name, 0.0) for name in dtypes], default=0.0)
        ill = False
        for kind, compute in runs.items():
            try:
                with np.errstate(all="ignore"):
                    found = compute(program, operands, sizes, self.mesh)
            except Exception as error:
                return f"{kind}: {type(error).__name__}: {error}"
            for n, (one, other) in enumerate(zip(found, wanted, strict=True)):
                if one.dtype != other.dtype or one.shape != other.shape:
                    return f"{kind}: result {n} is {one.dtype}{one.shape}, not {other.dtype}"
                type_ = function.body.out_types[n]
                tolerance = 0.0 if exact and kind == "the devices" else coarsest
                if same(one, other) or (
                    tolerance and laws.close(one, other, type_.dtype, tolerance, 0.0)
                ):
                    continue
                if tolerance and self.is_sensitive(function, sizes, operands, wanted, n):
                    ill = True
                    continue
                return f"{kind}: result {n} is\n{one}\nnot\n{other}"
        return None if ill else ""

    def is_sensitive(
        self,
        function: Function,
        sizes: Mapping[str, int],
        operands: Sequence[NDArray],
        wanted: Sequence[NDArray],
        n: int,
    ) -> bool:
        """Whether rounding of the operands changes a result as much."""
        for factor in (1 + 2**-12, 1 - 2**-12):
            moved = [
                (x * x.dtype.type(factor)).astype(x.dtype) if x.dtype.kind in "fcV" else x
                for x in operands
            ]
            with np.errstate(all="ignore"):
                found = np.asarray(evaluate(function, sizes, moved)[n])
            type_ = function.body.out_types[n]
            if not laws.close(found, wanted[n], type_.dtype, 0.01, 0.0):
                return True
        return False


class OnEachTrial(Trial):
    """A program of `psc.on_each`, compared with threads that run its text, too."""

    def function(self) -> Function | None:
        """A program for any number of devices, which gives what the threads give."""
        program = on_each_program(self.rng, self.size + 3)
        function = program.definition().instance_over_mesh(Choice())
        devices, rows, columns = self.rng.randrange(1, 4), *self.rng.choices((1, 2, 3), k=2)
        numbers = np.random.default_rng(self.seed)
        whole = devices * rows
        operands = [numbers.normal(size=s) for s in ((whole, columns), (columns, whole), columns)]
        sizes = {"n": whole, "d": columns, "data": devices}
        found = [np.asarray(x) for x in evaluate(function, sizes, operands)]
        for one, other in zip(found, program.meaning(devices, operands), strict=True):
            assert one.shape == other.shape, program.text
            assert laws.close(one, other, F64, 1e-8, 0.0), f"{program.text}\n{one}\nnot\n{other}"
        return function


UNDERIVED: Final = frozenset({"PSC512", "PSC520"})
"""Loops without a bound, and functions with a derivative of the other mode."""
COLLECTIVES: Final = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "own_part",
    "collective_permute",
)


def same(one: NDArray, other: NDArray) -> bool:
    """Whether arrays are the same, NaN and signs of zeros too."""
    if one.dtype.kind in "fc":
        return bool(np.array_equal(one, other, equal_nan=True))
    return one.tobytes() == other.tobytes()


def on_xla(
    program: Partitioned,
    operands: Sequence[NDArray],
    sizes: Mapping[str, int],
    mesh: Mapping[str, int],
) -> list[NDArray]:
    """The results of a program on devices of XLA, which send what is predicted."""
    import pscdsl as psc
    from pscdsl._src.targets.pipeline import lower_module
    from pscdsl._src.xla.mesh_executable import mesh_executable
    from tests.support.sent import compiled, emitted, predicted

    own = program.sizes(sizes, mesh)
    module = lower_module(program.function, own)
    wanted = predicted(program.function.body, own)
    assert emitted(module) == wanted
    executable = mesh_executable(module, psc.Mesh(**mesh), program.arguments, program.results)
    more = compiled(executable.text()) - predicted(program.function.body, own, on_cpu=True)
    assert not more, f"{more} is sent, and not predicted"
    return [np.asarray(x) for x in executable.run(operands)]


KINDS: Final[tuple[type[Trial], ...]] = (Trial, OnEachTrial)


def attempt(seed: int, given: Namespace) -> Iterator[Outcome]:
    """Try the programs of a seed."""
    for part, kind in enumerate(KINDS):
        if given.part in (None, part):
            yield kind(seed, given.size).outcome()


def arguments(parser: ArgumentParser) -> None:
    """Add the sizes of programs."""
    parser.add_argument("--size", type=int, default=6, help="statements of a program, at most")


def prepare(_: Namespace) -> None:
    """Give the processes eight devices."""
    os.environ["PSCDSL_DEVICES"] = "8"


CAMPAIGN = Campaign(
    about="Programs and gradients on the devices of meshes beside the whole arrays.",
    attempt=attempt,
    texts=lambda seed, given: [f"{kind.__name__}, seed {seed}" for kind in KINDS],
    default=2000,
    programs=len(KINDS),
    chunk=50,
    arguments=arguments,
    around=deep_and_quiet,
    prepare=prepare,
)
