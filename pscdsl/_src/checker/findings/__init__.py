"""What becomes of findings between the checker and the report.

Comments silence some (`suppressions`), settings leave some out (`selection`), and a baseline knows
some from before (`baseline`).  All of it is plain data in and plain data out.
"""
