"""Orders of operators for a group, as the page and the doctor read them."""

ORDERS = (
    *("paused", "pause_reason", "pinned", "triggered_at", "resumed_at"),
    *("ordered_by", "ordered_at", "updated_at"),
    *("approved_target_hash", "approved_base_hash", "approval_reason", "approved_by", "approved_at"),
)
"""Columns of table `orders`."""
