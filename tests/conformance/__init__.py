"""The conformance kit: whether a follower, in whatever language, keeps the rules of `deploy/docs/following*.md`.

`python -m tests.conformance --help`; the lines that a follower prints are in `deploy/docs/conformance.md`. It imports
`assignor`, the embedded broker of `pipeline` and `tests.support`. Start reading at `trial`, then `hand_over` and
`assignor`, which are lists of rules.
"""
