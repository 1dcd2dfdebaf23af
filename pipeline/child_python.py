"""A second Python process that finds modules where this one finds them."""

import subprocess
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


def asked(command: list[str], question: str, *, timeout_s: float) -> "subprocess.CompletedProcess[str]":
    """Run the command with the question on stdin; return how it ended, with what it wrote to stdout.

    Raises:
        OSError: The process cannot be started.
        subprocess.TimeoutExpired: It did not end in time, and was killed.
        UnicodeDecodeError: What it wrote is no UTF-8.
    """
    # A session of its own, so that Ctrl-C at this process's terminal does not end it half-way.
    return subprocess.run(
        command,
        input=question,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=timeout_s,
        text=True,
        check=False,
        start_new_session=True,
    )
