"""Errors of the pure core: one root, and a class for each thing a caller can do about it."""


class AssignorError(Exception):
    """Root of every error raised on purpose by `assignor`."""


class DecodeError(AssignorError):
    """Bytes that do not have the expected format.

    Any client with access to the topic can write such bytes, so they are expected: quarantine the
    record or treat the claim as absent, and continue.

    Attributes:
        reason: The fault, without the position.
        position: Position in the decoded bytes, counted from 0.
    """

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason, position)
        self.reason = reason
        self.position = position

    def __str__(self) -> str:
        return f"{self.reason} (at byte {self.position})"


class EncodeError(AssignorError):
    """A value that the format cannot hold, such as a string that is too long for its length field."""


class ControlRecordTooLargeError(AssignorError):
    """A control record above the size a broker takes; it is refused, never cut.

    Attributes:
        group: Group id the record is for.
        size_bytes: Size of the encoded record.
        limit_bytes: Largest size allowed.
    """

    def __init__(self, group: str, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(group, size_bytes, limit_bytes)
        self.group = group
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes

    def __str__(self) -> str:
        return (
            f"control record of group {self.group!r} has {self.size_bytes} bytes, limit {self.limit_bytes}; "
            "raise max.message.bytes of the control topic together with the limit, or exclude the group"
        )


class InvalidGroupError(AssignorError):
    """Members, topics or measures that do not describe a consumer group; correct the input."""


class UnequalSubscriptionsError(AssignorError):
    """A strategy for equal subscriptions met a group whose members subscribe to different topics.

    Attributes:
        strategy: The strategy that refuses.
        alternative: The strategy that handles such a group.
    """

    def __init__(self, strategy: str, alternative: str) -> None:
        super().__init__(strategy, alternative)
        self.strategy = strategy
        self.alternative = alternative

    def __str__(self) -> str:
        return (
            f"{self.strategy} needs every member to subscribe to the same topics, and here they differ; "
            f"use {self.alternative}"
        )


class UnknownStrategyError(AssignorError):
    """No strategy has this name.

    Attributes:
        name: What was asked for.
        available: Names there are, sorted.
    """

    def __init__(self, name: str, available: tuple[str, ...]) -> None:
        super().__init__(name, available)
        self.name = name
        self.available = available

    def __str__(self) -> str:
        return f"no strategy {self.name!r}; there are: {', '.join(self.available)}"


class InvalidOptionError(AssignorError):
    """A strategy does not take this option, or not this value.

    Attributes:
        strategy: Name of the strategy.
        option: Name of the option.
    """

    def __init__(self, strategy: str, option: str, problem: str) -> None:
        super().__init__(strategy, option, problem)
        self.strategy = strategy
        self.option = option
        self._problem = problem

    def __str__(self) -> str:
        return f"{self.strategy}: option {self.option!r} {self._problem}"


class NoCommonAssignorError(AssignorError):
    """No assignor is supported by every member, so the group has none; change the members' lists.

    Attributes:
        listed: Every name that any member lists, sorted.
    """

    def __init__(self, listed: tuple[str, ...]) -> None:
        super().__init__(listed)
        self.listed = listed

    def __str__(self) -> str:
        return f"no assignor is listed by every member; they list: {', '.join(self.listed) or 'none'}"


class InvalidAssignmentError(AssignorError):
    """An assignment breaks a rule that every assignment keeps; never publish it.

    Attributes:
        problems: Every broken rule, with the first partition or member that breaks it.
    """

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        return "invalid assignment: " + "; ".join(self.problems)


class InvalidCaseError(AssignorError):
    """A JSON case is not one; the message names the key.

    Attributes:
        key: Path of the key, `members.m1.owned.t`, or "" for the case as a whole.
    """

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(key, problem)
        self.key = key
        self._problem = problem

    def __str__(self) -> str:
        return f"{self.key}: {self._problem}" if self.key else self._problem


class AbstainError(AssignorError):
    """lagwise makes no plan for a group; the message is the reason for the operator."""
