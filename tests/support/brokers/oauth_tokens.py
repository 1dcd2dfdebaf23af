"""A token function as users write them, which does what a file says: it is called in several processes.

Its configuration (`sasl.oauthbearer.config`) is a folder; `calls` in it gets a line with the process of each call.
"""

import base64
import json
import math
import os
import time
from pathlib import Path
from typing import Any

LIFE_S = 10.0
_HANG_S = 600


def does(folder: Path, what: str) -> None:
    """Let the function do this from now on: `ok`, `fail`, `hang` or `wrong`, a token that the broker refuses."""
    new = folder / "mode.new"
    new.write_text(what, encoding="utf-8")
    new.replace(folder / "mode")


def processes(folder: Path) -> list[int]:
    """Of each call, oldest first."""
    calls = folder / "calls"
    return [int(line) for line in calls.read_text(encoding="utf-8").split()] if calls.exists() else []


def token(config: str) -> tuple[str, float]:
    """The contract of `oauth_cb`."""
    folder = Path(config)
    with (folder / "calls").open("a", encoding="utf-8") as calls:
        calls.write(f"{os.getpid()}\n")
    mode = (folder / "mode").read_text(encoding="utf-8")
    if mode == "fail":
        raise PermissionError("the role of this host is gone")
    if mode == "hang":
        time.sleep(_HANG_S)
    now_s = time.time()
    return unsecured_jws(now_s, now_s - 60 if mode == "wrong" else now_s + LIFE_S), now_s + LIFE_S


def unsecured_jws(issued_s: float, expires_s: float) -> str:
    """What Kafka's validator of unsecured tokens takes.

    Issuers give whole seconds. With fractions, a broker that looks within the same millisecond refuses the token as
    issued in the future, as its own clock counts whole milliseconds.
    """
    claims = {"sub": "lagwise", "iat": math.floor(min(issued_s, expires_s - 1)), "exp": expires_s}
    return f"{_part({'alg': 'none'})}.{_part(claims)}."


def _part(content: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")
