"""Random keys are linear values: each is consumed at most once.  Found out on the typed program.

places    which part of which array of keys a variable is, what was done with it, and whether two
          uses may meet in one key
loops     bodies walked as two turns, and where what they carry may come from; combined rows
walk      a block from its first equation to its last, branches side by side, and called functions
"""
