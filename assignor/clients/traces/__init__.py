"""What followers do, as data: event in, actions out, for implementations in any language to replay.

`follower/*.json` is the follower that hands partitions over within a generation; its package says how to read them.
They are JSON and nothing else: no code imports them, and this package imports nothing.
"""
