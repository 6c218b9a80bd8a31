"""A layered drawing of an acyclic graph: layers, few crossings, then coordinates.

Longest paths give the layers. An edge over several layers bends in each of them, and all edges of
one output share their bends. Orders follow the average place of neighbours, and so do coordinates:
those of a layer are the nearest ones, by least squares, that keep the items apart.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

GAP, RISE = 18.0, 34.0
"""The pixels between neighbours in a layer, and between layers."""
BEND = 7.0
"""The width of a bend, which neighbouring bends need not exceed."""
WIDEST = 1200.0
"""The items of a wider layer are distributed over several layers."""
ROUNDS = 12

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge from an output of an earlier item to a later item."""

    source: int
    output: int
    target: int


@dataclass(frozen=True, slots=True)
class Drawing:
    """The places of items and arrows."""

    width: float
    height: float
    corners: tuple[Point, ...]
    """The upper left corner of each item."""
    routes: tuple[tuple[Point, ...], ...]
    """The points of each arrow, from top to bottom."""


@dataclass(eq=False, slots=True)
class _Cell:
    """An item or a bend in a layer."""

    layer: int
    width: float
    height: float = 0.0
    above: list[_Cell] = field(default_factory=list["_Cell"])
    below: list[_Cell] = field(default_factory=list["_Cell"])
    x: float = 0.0
    """Of the centre."""
    y: float = 0.0
    """Of the upper edge."""


def arrange(sizes: Sequence[Point], arrows: Sequence[Arrow], outputs: Sequence[int]) -> Drawing:
    """Return a drawing of items, given their sizes and numbers of outputs.

    Arrows lead from earlier to later items. The last item is below all others.
    """
    layers = _split(_layers(len(sizes), arrows), [width for width, _ in sizes])
    cells = [_Cell(layer, *size) for layer, size in zip(layers, sizes, strict=True)]
    bends = _bends(cells, arrows)
    rows: dict[int, list[_Cell]] = defaultdict(list)
    for cell in [*cells, *(bend for chain in bends.values() for bend in chain)]:
        rows[cell.layer].append(cell)
    order = _ordered([rows[layer] for layer in sorted(rows)])
    _place(order)
    left = min((cell.x - cell.width / 2 for row in order for cell in row), default=0.0)
    right = max((cell.x + cell.width / 2 for row in order for cell in row), default=0.0)
    height = 0.0
    heights: list[float] = []
    for row in order:
        heights.append(max(cell.height for cell in row))
        for cell in row:
            cell.x, cell.y = cell.x - left, height
        height += heights[-1] + RISE
    corners = [(cell.x - cell.width / 2, cell.y) for cell in cells]
    routes = _routes(cells, arrows, bends, outputs, heights)
    return Drawing(right - left, max(0.0, height - RISE), tuple(corners), tuple(routes))


def _layers(count: int, arrows: Sequence[Arrow]) -> list[int]:
    """Return the layer of each item; one without operands is just above its first use."""
    layers = [0] * count
    ordered = sorted(arrows, key=lambda arrow: arrow.target)
    for arrow in ordered:
        layers[arrow.target] = max(layers[arrow.target], layers[arrow.source] + 1)
    if count > 1:
        layers[-1] = max(layers[-1], max(layers[:-1]) + 1)
    fed = {arrow.target for arrow in arrows}
    first: dict[int, int] = {}
    for arrow in arrows:
        use = layers[arrow.target]
        first[arrow.source] = min(first.get(arrow.source, use), use)
    for source, use in first.items():
        if source not in fed:
            layers[source] = use - 1
    return layers


def _split(layers: Sequence[int], widths: Sequence[float]) -> list[int]:
    """Return layers of which none is too wide; no arrow is inside of a layer."""
    split = [0] * len(layers)
    number, before, width = -1, -1, 0.0
    for index in sorted(range(len(layers)), key=lambda index: (layers[index], index)):
        width += widths[index] + GAP
        if layers[index] != before or width > WIDEST:
            number, before, width = number + 1, layers[index], widths[index] + GAP
        split[index] = number
    return split


def _bends(
    cells: Sequence[_Cell], arrows: Sequence[Arrow]
) -> Mapping[tuple[int, int], Sequence[_Cell]]:
    """Return the bends of each output, and link the cells of neighbouring layers."""
    chains: dict[tuple[int, int], list[_Cell]] = {}
    for arrow in arrows:
        chain = chains.setdefault((arrow.source, arrow.output), [])
        source, target = cells[arrow.source], cells[arrow.target]
        while source.layer + len(chain) + 1 < target.layer:
            before = chain[-1] if chain else source
            chain.append(_Cell(before.layer + 1, BEND))
            _link(before, chain[-1])
        passed = target.layer - source.layer - 1
        _link(chain[passed - 1] if passed else source, target)
    return chains


def _link(upper: _Cell, lower: _Cell) -> None:
    upper.below.append(lower)
    lower.above.append(upper)


def _ordered(rows: Sequence[list[_Cell]]) -> Sequence[list[_Cell]]:
    """Return the layers in the order with the fewest crossings among those tried."""
    best, fewest = rows, _crossings(rows)
    current = [*rows]
    for number in range(ROUNDS):
        if not fewest:
            break
        down = number % 2 == 0
        for place in range(len(current)) if down else reversed(range(len(current))):
            neighbour = place - 1 if down else place + 1
            if 0 <= neighbour < len(current):
                current[place] = _sorted(current[place], current[neighbour], down=down)
        crossings = _crossings(current)
        if crossings < fewest:
            best, fewest = [*current], crossings
    return best


def _sorted(row: Sequence[_Cell], fixed: Sequence[_Cell], *, down: bool) -> list[_Cell]:
    """Return a layer by the average place of neighbours; cells without any stay in place."""
    places = {cell: place for place, cell in enumerate(fixed)}

    def key(item: tuple[int, _Cell]) -> float:
        place, cell = item
        near = cell.above if down else cell.below
        return sum(places[each] for each in near) / len(near) if near else float(place)

    return [cell for _, cell in sorted(enumerate(row), key=key)]


def _crossings(rows: Sequence[Sequence[_Cell]]) -> int:
    total = 0
    for upper, lower in pairwise(rows):
        places = {cell: place for place, cell in enumerate(lower)}
        seen: list[int] = []
        for cell in upper:
            ends = [places[each] for each in cell.below]
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _place(rows: Sequence[Sequence[_Cell]]) -> None:
    """Set the horizontal places of all cells."""
    for row in rows:
        _spread(row, [0.0] * len(row))
    for number in range(ROUNDS):
        down = number % 2 == 0
        for row in rows if down else reversed(rows):
            wanted = [_wanted(cell, cell.above if down else cell.below) for cell in row]
            _spread(row, wanted)


def _wanted(cell: _Cell, near: Sequence[_Cell]) -> float:
    return sum(each.x for each in near) / len(near) if near else cell.x


def _spread(row: Sequence[_Cell], wanted: Sequence[float]) -> None:
    """Place a layer as near to the wanted places as its order and the gaps admit."""
    steps = [(a.width + b.width) / 2 + _gap(a, b) for a, b in pairwise(row)]
    offsets = [*accumulate(steps, initial=0.0)]
    pools: list[tuple[float, int]] = []  # averages that increase, with the cells in each
    for want, offset in zip(wanted, offsets, strict=False):
        average, size = want - offset, 1
        while pools and pools[-1][0] >= average:
            before, count = pools.pop()
            average = (average * size + before * count) / (size + count)
            size += count
        pools.append((average, size))
    found = [average for average, size in pools for _ in range(size)]
    for cell, average, offset in zip(row, found, offsets, strict=False):
        cell.x = average + offset


def _gap(left: _Cell, right: _Cell) -> float:
    """Return the space between two cells; bends need none between them."""
    return GAP if left.height or right.height else 0.0


def _routes(
    cells: Sequence[_Cell],
    arrows: Sequence[Arrow],
    bends: Mapping[tuple[int, int], Sequence[_Cell]],
    outputs: Sequence[int],
    heights: Sequence[float],
) -> Iterator[tuple[Point, ...]]:
    """Yield the points of each arrow: at its ends, and above and below each bend."""
    middles: list[list[Point]] = []
    coming: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for number, arrow in enumerate(arrows):
        source, target = cells[arrow.source], cells[arrow.target]
        start = _port(source, arrow.output, outputs[arrow.source])
        middle: list[Point] = [(start, source.y + source.height)]
        for bend in bends[arrow.source, arrow.output][: target.layer - source.layer - 1]:
            middle += [(bend.x, bend.y), (bend.x, bend.y + heights[bend.layer])]
        middles.append(middle)
        coming[arrow.target].append((middle[-1][0], number))
    ports: dict[int, float] = {}
    for target_index, found in coming.items():
        for place, (_, number) in enumerate(sorted(found)):
            ports[number] = _port(cells[target_index], place, len(found))
    for number, arrow in enumerate(arrows):
        yield (*middles[number], (ports[number], cells[arrow.target].y))


def _port(cell: _Cell, place: int, count: int) -> float:
    """Return one of several places along the edge of a cell, near its centre."""
    step = min(24.0, cell.width / (count + 1))
    return cell.x + (place - (count - 1) / 2) * step
