"""The CPU's table: what is done instead of a primitive's own rule, in the order it is tried."""

from __future__ import annotations

from typing import Final

from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.control.scan import Scan
from pscdsl._src.primitives.control.while_loop import While
from pscdsl._src.primitives.convolution import Convolution
from pscdsl._src.primitives.dynamic_slicing import DynamicUpdate
from pscdsl._src.primitives.fft import Fft
from pscdsl._src.primitives.linalg.factorisations import Cholesky, Lu, LuSolve, TriangularSolve
from pscdsl._src.primitives.reductions import ArgReduce, Cumulative, ExponentialSum, Largest, Reduce
from pscdsl._src.primitives.shaping import Broadcast, Slice
from pscdsl._src.primitives.sorting import SortWords, TopK
from pscdsl._src.targets.cpu.blocks.groups import with_groups
from pscdsl._src.targets.cpu.blocks.stages import with_stages
from pscdsl._src.targets.cpu.convolution import channels_last, few_channels
from pscdsl._src.targets.cpu.functions import circular, exact
from pscdsl._src.targets.cpu.functions.powers import constant_powers, powers
from pscdsl._src.targets.cpu.functions.powers_of_two import powers_of_two
from pscdsl._src.targets.cpu.functions.single_logarithm import log1p
from pscdsl._src.targets.cpu.linalg import lapack, many, one_column, small
from pscdsl._src.targets.cpu.loops import factors
from pscdsl._src.targets.cpu.loops.scan_sums import sums_afterwards
from pscdsl._src.targets.cpu.options import module_options
from pscdsl._src.targets.cpu.products import (
    integers_by_floats,
    outer_products,
    product_of_vectors,
    rows_in_parts,
)
from pscdsl._src.targets.cpu.rows import by_slices, repeating
from pscdsl._src.targets.cpu.rows.exponential_sums import plain_exponential_sum
from pscdsl._src.targets.cpu.rows.extreme_places import extreme_then_place, place_by_blocks
from pscdsl._src.targets.cpu.rows.extremes import extreme_beside_sum
from pscdsl._src.targets.cpu.rows.padded_update import padded_update
from pscdsl._src.targets.cpu.rows.prefixes import prefix_loop
from pscdsl._src.targets.cpu.rows.sorting_loops import by_digits, by_network
from pscdsl._src.targets.cpu.rows.top_of_blocks import top_of_blocks
from pscdsl._src.targets.primitives import Apart, ReadOften, call_apart
from pscdsl._src.targets.target import Target

CPU: Final = Target(
    "cpu",
    passes=(with_stages, with_groups),
    rewrites={
        DotGeneral: (
            outer_products,
            product_of_vectors,
            rows_in_parts,
            integers_by_floats,
            factors.first_factor_turned,
        ),
        Convolution: (few_channels,),
        ArgReduce: (place_by_blocks,),
        Scan: (
            sums_afterwards,
            factors.symmetric_in_scan,
            factors.turned_before_scan,
        ),
        While: (factors.symmetric_in_while, factors.turned_before_while),
        Cholesky: (many.cholesky_in_lanes, small.written_out_cholesky),
        TriangularSolve: (
            small.written_out_solve,
            many.solve_in_lanes,
            one_column.solved_by_blocks,
        ),
        Lu: (many.lu_in_lanes, small.written_out_lu),
        LuSolve: (many.lu_solve_in_lanes,),
    },
    translations={
        Apart: (call_apart,),
        Broadcast: (repeating.repeated,),
        Slice: (repeating.sliced,),
        ReadOften: (repeating.read_often,),
        DynamicUpdate: (padded_update,),
        Reduce: (extreme_beside_sum, by_slices.fewer),
        Largest: (by_slices.fewer_for_largest,),
        ExponentialSum: (plain_exponential_sum,),
        ArgReduce: (extreme_then_place,),
        Cumulative: (prefix_loop,),
        SortWords: (by_network, by_digits),
        TopK: (top_of_blocks,),
        Convolution: (channels_last,),
        Fft: (exact.inverse_of_real,),
        Cholesky: (lapack.potrf,),
        TriangularSolve: (lapack.trsm,),
        e.sin: (circular.sine,),
        e.cos: (circular.cosine,),
        e.tan: (circular.tangent,),
        e.log1p: (log1p,),
        e.power: (constant_powers, powers_of_two, powers),
        e.erf: (exact.erf,),
    },
    options=module_options.FORMS,
)
