"""Closed-loop worlds: what plans do to groups over hours, against no plans, KIP-169 and an oracle.

Start with `scenario` (what happens, whatever the policy), `world` (the fluid model) and `run` (the loop); `surroundings`
answers to what a group does, and the oracle's look ahead knows nothing of it. `planner` is
the one module that calls `pipeline.planning`.
"""
