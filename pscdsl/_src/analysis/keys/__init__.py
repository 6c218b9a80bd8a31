"""Random keys are linear values: each is consumed at most once.  Found out on the typed program.

numbers   integers as sums of unknowns in their types, so that two can be told apart
places    which part of which array of keys a variable is
uses      what was done with a place, and whether two uses may meet in one key
walk      a block from its first equation to its last, branches side by side
loops     bodies walked as two turns, and where what they carry may come from
combinations   rows combined by a function, walked like a loop
calls     what a called function does with its keys, as seen by its caller
"""

from __future__ import annotations

from pscdsl._src.analysis.keys.walk import reused_keys

__all__ = ["reused_keys"]
