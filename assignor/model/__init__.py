"""A consumer group as flat arrays: topics, members, subscriptions, claims, racks; and an assignment of it.

Imports numpy and `errors`, nothing else of this package. Start with `topics`, which has an example of the indices that
all arrays share, then `group` and `assignment`; `members` builds a group from subscriptions and claims, `by_member`
turns an assignment back into names.
"""
