"""The names of `jax.ops`."""

import numpy as np

import pscdsl as psc


def _segments(
    fill,
    combine,
    data,
    ids,
    count,
    indices_are_sorted=False,
    unique_indices=False,
    bucket_size=None,
    mode=None,
):
    """Return rows of the same segment together; ids out of range are left out."""
    ids = np.asarray(ids)
    places = np.where((ids >= 0) & (ids < count), ids, count)
    empty = np.full((count + 1, *np.shape(data)[1:]), np.asarray(fill, dtype=data.dtype))
    return psc.update(empty, places, data, combine=combine)[:count]


def segment_sum(data, segment_ids, num_segments, *options, **named):
    """Return the sums of the rows of each segment."""
    return _segments(0, "add", data, segment_ids, num_segments, *options, **named)


def segment_prod(data, segment_ids, num_segments, *options, **named):
    """Return the products of the rows of each segment."""
    return _segments(1, "multiply", data, segment_ids, num_segments, *options, **named)


def segment_max(data, segment_ids, num_segments, *options, **named):
    """Return the largest rows of each segment."""
    return _segments(
        _least(data.dtype), "maximum", data, segment_ids, num_segments, *options, **named
    )


def segment_min(data, segment_ids, num_segments, *options, **named):
    """Return the least rows of each segment."""
    return _segments(
        _largest(data.dtype), "minimum", data, segment_ids, num_segments, *options, **named
    )


def _least(dtype):
    return -np.inf if np.issubdtype(dtype, np.floating) else np.iinfo(dtype).min


def _largest(dtype):
    return np.inf if np.issubdtype(dtype, np.floating) else np.iinfo(dtype).max
