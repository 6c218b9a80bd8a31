"""The names of `jax.tree_util`."""

from functools import partial as Partial

from jax.tree import all as tree_all
from jax.tree import leaves as tree_leaves
from jax.tree import map as tree_map
from jax.tree import reduce as tree_reduce
