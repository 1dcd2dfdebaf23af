"""What plans did: the members that they concern, the verdict, the price of a move, and the way back.

`witnesses` are what a plan's members do at their commits, `losses` what that costs them, `judge` the verdict, `waiting`
the plans that wait for it, `price` what members read less while their partitions are new to them, and `way_back` the
plan that takes a plan back. Imports `problem`, and of `planning` guards, progress, record, state and values.
"""
