"""Commands of lagwise in messages, to be pasted into bash: whoever starts a consumer chooses the name of its group."""

from shlex import quote


def command(name: str, group_id: str) -> str:
    """Return the command for this group, between backticks."""
    # A name that begins with a hyphen would be an option.
    end_of_options = "-- " if group_id.startswith("-") else ""
    return f"`lagwise {name} {end_of_options}{quoted(group_id)}`"


def quoted(text: str) -> str:
    """Return the text as an argument for bash that no character of it can escape."""
    if text.isprintable():
        return quote(text)
    escaped = (c if c.isprintable() and c not in "\\'" else f"\\U{ord(c):08x}" for c in text)
    return f"$'{''.join(escaped)}'"
