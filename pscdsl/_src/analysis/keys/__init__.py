"""The check on the typed program that random keys are linear: each is consumed at most once.

places    the array and the part of it that a variable is, its uses, and whether two uses may be
          of one key
loops     bodies walked as two turns, with the possible origins of their carries; combined rows
walk      a block from its first equation to its last, with all branches and called functions
"""
