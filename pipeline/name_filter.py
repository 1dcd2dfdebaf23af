"""Names that regular expressions let through: the one rule for topics, groups and pins."""

import re


class NameFilter:
    """Lets a name through that some pattern of `include` matches whole and none of `exclude` does.

    A dot matches a line break as well: a group id is whatever a client sends, and `.*` means every one.

    Example:
        >>> NameFilter((".*",), ("test-.*",)).admits("billing")
        True
    """

    def __init__(self, include: tuple[str, ...], exclude: tuple[str, ...] = ()) -> None:
        """Compile the patterns.

        Raises:
            re.error: One of them is no regular expression.
        """
        self._include = [re.compile(pattern, re.DOTALL) for pattern in include]
        self._exclude = [re.compile(pattern, re.DOTALL) for pattern in exclude]

    def admits(self, name: str) -> bool:
        """Whether the filter lets `name` through."""
        if any(pattern.fullmatch(name) for pattern in self._exclude):
            return False
        return any(pattern.fullmatch(name) for pattern in self._include)
