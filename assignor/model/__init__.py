"""A consumer group as flat arrays: topics, members, subscriptions, claims, racks; and an assignment of it.

Imports numpy and `errors`, nothing else of this package. Start with `group`, then `assignment`; `members` builds a
group from what members say, `by_member` turns an assignment back into names.
"""
