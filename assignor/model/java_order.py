"""The order of names in Kafka's Java code; a separate module, because code without numpy needs it."""


def java_order(name: str) -> bytes:
    """Sort key that orders names as Java's `String.compareTo` does: by UTF-16 code unit.

    It differs from Python's order only where supplementary characters meet U+E000 to U+FFFF. A lone
    surrogate, which JSON can carry, keeps its place instead of raising.
    """
    return name.encode("utf-16-be", "surrogatepass")
