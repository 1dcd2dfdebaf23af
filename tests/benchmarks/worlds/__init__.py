"""Closed-loop worlds: what plans do to groups over hours, against no plans, KIP-169 and an oracle.

Start with `scenario` (what happens, whatever the policy), `world` (the fluid model) and `run` (the loop). In some worlds
`surroundings` answer to what the group does; the oracle, when it looks ahead, does not know them. `planner` is the one
module that calls `pipeline.planning`.
"""
