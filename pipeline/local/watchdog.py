"""A small process that lives as long as its parent and takes a child down with it.

    python watchdog.py GRACE_S PROGRAM ARG…

Prints the child's process id, then waits. When the parent closes this process's standard input or ends in any way,
SIGKILL included, the child gets SIGTERM and, GRACE_S later, SIGKILL. Linux alone could do this with PR_SET_PDEATHSIG.
Exits with the status of the child. It runs as a file and not as a module, so it imports only the standard library.
"""

import os
import select
import signal
import subprocess
import sys

_LOOK_EVERY_S = 0.2


def main(grace_s: float, command: list[str]) -> int:
    """Start the command, wait for the first of the two to end, and return the child's exit status."""
    parent = os.getppid()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr) as child:
        print(child.pid, flush=True)  # noqa: T201 - the parent reads it
        while child.poll() is None:
            if _parent_is_gone(parent):
                _end(child, grace_s)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _parent_is_gone(parent: int) -> bool:
    readable, _, _ = select.select([sys.stdin], [], [], _LOOK_EVERY_S)
    # A process forked from the parent may hold the other end of the pipe open, hence the second check.
    return bool(readable) or os.getppid() != parent


def _end(child: "subprocess.Popen[bytes]", grace_s: float) -> None:
    child.terminate()
    # A stopped process does not handle SIGTERM.
    child.send_signal(signal.SIGCONT)
    try:
        child.wait(grace_s)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
