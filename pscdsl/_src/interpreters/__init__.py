"""Walks over a typed program that ask each of its primitives for one kind of rule."""
