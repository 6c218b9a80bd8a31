"""The language server: `pscdsl server`.

`workspace` holds the state, `documents` translates places, `findings`, `kernels`, `size_names` and
`explanations` answer, `protocol` speaks to the editor.
"""
