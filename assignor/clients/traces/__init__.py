"""Traces of followers as data: event in, actions out, for implementations in any language to replay.

`follower/*.json` has the follower that hands partitions over within a generation; its package explains the format.
They are pure JSON: no code imports them, and this package imports nothing.
"""
