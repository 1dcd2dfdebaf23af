"""Strategy `lag-sticky`: begin with `strategy`, which says what is minimised and how."""

from assignor.lag_sticky.strategy import NAME, OPTIONS, assign

__all__ = ["NAME", "OPTIONS", "assign"]
