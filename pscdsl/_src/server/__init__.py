"""The language server: `pscdsl server`.

`workspace` holds the state, `documents` translates places, `findings`, `kernels`, `size_names` and
`explanations` answer, `protocol` speaks to the editor. The playground in the documentation calls
`workspace`, `kernels` and `explanations`, which need no pygls, in its own process.
"""
