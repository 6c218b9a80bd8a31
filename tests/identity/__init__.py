"""Pairs of random programs in which exactly one thing differs that matters: never confused."""
