"""Kafka's ListOffsets, sent to each leader separately: log start and end offsets, or why they are unknown.

Imports sibling modules of `kafka`. Start with `question`, which asks once and decides when a broker counts as silent;
`leaders` keeps the leaders, and those that did not answer, from one question to the next.
"""
