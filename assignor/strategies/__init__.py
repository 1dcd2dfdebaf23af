"""The strategies, one module or package for each, and the registry of their names.

Imports `model` and `evaluation.drain`, never the judge. Start with `registry`: a strategy is a function from a
`Group` to an `Assignment`. `catalogue` has what is known of each without arrays, `names` has the names. `selection`
says which of them a group runs, `handover` how a target is given out in two steps.
"""
