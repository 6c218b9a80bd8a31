"""The primitives of the typed program, one family a file; each is declared with all its rules."""

from pscdsl._src.ir.builder import Basis, Builder
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.random import SeedKey
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.shaping import Broadcast, Constant, Reshape, SizeValue

Builder.basis = Basis(
    constant=Constant.of,
    size=SizeValue,
    broadcast=Broadcast,
    reshape=Reshape,
    sum=lambda axes: Reduce("sum", axes),
    convert=e.Convert,
    seed_key=SeedKey,
    add=e.add,
    subtract=e.subtract,
    multiply=e.multiply,
    divide=e.divide,
    negative=e.negative,
    bitwise_and=e.bitwise_and,
    bitwise_or=e.bitwise_or,
    bitwise_xor=e.bitwise_xor,
    invert=e.invert,
    less=e.less,
    less_equal=e.less_equal,
    greater=e.greater,
    greater_equal=e.greater_equal,
)
