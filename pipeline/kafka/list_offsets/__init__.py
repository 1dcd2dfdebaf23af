"""Kafka's ListOffsets, put to each leader by itself: where logs start and end, or why that is not known.

Imports sibling modules of `kafka`. Start with `question`, which asks once and decides that a broker is silent;
`leaders` remembers from question to question whom to ask, and who did not answer.
"""
