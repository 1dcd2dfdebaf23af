"""The strategies, one module or package for each, and the registry of their names.

Imports `model` and `evaluation.drain`, never the judge. Start with `registry`: a strategy is a function from a
`Group` to an `Assignment`. `catalogue` has the facts of each without arrays, `names` the names. `selection` selects the
one that a group runs, `handover` hands a target out in two steps.
"""
