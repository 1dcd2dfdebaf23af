"""The life of a plan: the events that end it or renew it, members' answers, an operator's approval, pokes.

`lifecycle` is the table of state by event, `answers` and `approval` are what it observes, `next_state` is what a
decision leaves for the next one. Imports `effect`, `problem`, and of `planning` progress, record, state and values.
"""
