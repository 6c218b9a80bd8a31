"""Control flow by functions: `cond`, `scan`, `while_loop` and the like."""
