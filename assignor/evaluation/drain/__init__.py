"""Drain times: of an assignment, and the one that no assignment can beat; costs, and why it is not sooner.

Imports `model` only. Strategies use it too: it measures, and judges nobody. Start with `time`, then `bound`;
`report` puts the figures of a whole assignment together.
"""
