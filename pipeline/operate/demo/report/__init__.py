"""Results of a demo: lag over time, figures of groups, summary, plot.

Imports `snapshot`, `moves` and the scenario. Start with `timeline`, from which all others are made.
"""
