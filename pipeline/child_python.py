"""A second Python process that finds modules where this one finds them."""

import sys


def command(code: str) -> list[str]:
    """The command that runs `code`; its arguments come behind it.

    spark-submit may have put modules on this process's path alone, and with `-m` those of the working folder would come
    first.
    """
    return [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"]


def module_command(name: str) -> list[str]:
    """The command that runs module `name` as `python -m` does; its arguments come behind it."""
    return command(f"import runpy; runpy.run_module({name!r}, run_name='__main__', alter_sys=True)")
