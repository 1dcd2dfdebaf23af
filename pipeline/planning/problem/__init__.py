"""What a strategy is asked: the group as arrays, how fast its members are taken to be, and what may not move.

Start with `group`; `evidence` is what commits show, of many groups at once, `capacity` what members have shown by now,
`fixed` which partitions stay, `behind` how late the group is, `improvement` what a target gains, and `case` is all that
one decision depends on. Imports `assignor` and `lag`, and of `planning` facts, guards, state, record and values.
"""
