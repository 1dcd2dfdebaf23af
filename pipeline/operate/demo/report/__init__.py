"""What a demo has come to: lag over time, results, summary, plot.

Imports `snapshot`, `moves` and the scenario. Start with `timeline`, which all others are made from.
"""
