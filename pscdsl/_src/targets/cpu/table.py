"""The CPU's table: replacements for the primitives' own rules, in the order of trying."""

from __future__ import annotations

from typing import Final

from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.factorisations import Cholesky, Lu, LuSolve, TriangularSolve
from pscdsl._src.primitives.fft import Fft
from pscdsl._src.primitives.reductions import ArgReduce, Cumulative, Largest, Reduce
from pscdsl._src.primitives.scan import Scan
from pscdsl._src.primitives.shaping import Broadcast, Slice
from pscdsl._src.primitives.sorting import SortWords, TopK
from pscdsl._src.primitives.while_loop import While
from pscdsl._src.primitives.windows import Convolution
from pscdsl._src.targets.cpu import functions, linalg, loops, module_options, reductions, shaping
from pscdsl._src.targets.cpu.blocks import with_groups
from pscdsl._src.targets.cpu.functions import constant_powers, log1p, powers, powers_of_two
from pscdsl._src.targets.cpu.loops import sums_afterwards
from pscdsl._src.targets.cpu.products import (
    channels_last,
    few_channels,
    outer_products,
    product_of_vectors,
    rows_in_parts,
)
from pscdsl._src.targets.cpu.reductions import (
    extreme_then_place,
    place_by_blocks,
    prefix_loop,
)
from pscdsl._src.targets.cpu.scalar_loops import CountedLoop, scalar_scan, scalar_while
from pscdsl._src.targets.cpu.sorting import by_digits, by_network, top_of_blocks
from pscdsl._src.targets.rewriting import Apart, ReadOften, Target, call_apart

CPU: Final = Target(
    "cpu",
    passes=(with_groups,),
    rewrites={
        DotGeneral: (
            outer_products,
            product_of_vectors,
            rows_in_parts,
            loops.first_factor_turned,
        ),
        Convolution: (few_channels,),
        ArgReduce: (place_by_blocks,),
        Scan: (
            sums_afterwards,
            loops.symmetric_in_scan,
            loops.turned_before_scan,
            scalar_scan,
        ),
        While: (loops.symmetric_in_while, loops.turned_before_while, scalar_while),
        CountedLoop: (scalar_while,),
        Cholesky: (linalg.cholesky_in_lanes, linalg.written_out_cholesky),
        TriangularSolve: (
            linalg.written_out_solve,
            linalg.solve_in_lanes,
        ),
        Lu: (linalg.lu_in_lanes, linalg.written_out_lu),
        LuSolve: (linalg.lu_solve_in_lanes,),
    },
    translations={
        Apart: (call_apart,),
        Broadcast: (shaping.repeated,),
        Slice: (shaping.sliced,),
        ReadOften: (shaping.read_often,),
        Reduce: (reductions.by_blocks, reductions.fewer),
        Largest: (reductions.by_blocks, reductions.fewer_for_largest),
        ArgReduce: (extreme_then_place,),
        Cumulative: (prefix_loop,),
        SortWords: (by_network, by_digits),
        TopK: (top_of_blocks,),
        Convolution: (channels_last,),
        Fft: (functions.inverse_of_real,),
        Cholesky: (linalg.potrf,),
        TriangularSolve: (linalg.trsm,),
        e.sin: (functions.sine,),
        e.cos: (functions.cosine,),
        e.tan: (functions.tangent,),
        e.log1p: (log1p,),
        e.power: (constant_powers, powers_of_two, powers),
        e.erf: (functions.erf,),
    },
    options=module_options.FORMS,
)
