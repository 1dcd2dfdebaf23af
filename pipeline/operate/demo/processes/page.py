"""`lagwise serve` of the demo: `python -m pipeline.operate.demo.processes.page CONFIG`.

Prints its address as soon as it answers, and ends when the demo does.
"""

import os
import signal
import sys
from pathlib import Path
from threading import Thread

from pipeline import logs
from pipeline.config.load import load
from pipeline.errors import ConfigError
from pipeline.operate.demo.processes.child import stop_with_parent
from pipeline.operate.serve.app import build_app
from pipeline.operate.serve.listener.server import serve
from pipeline.tables.reading import Tables


def _serve_until_the_demo_ends(file: Path) -> None:
    stop = stop_with_parent()

    def end() -> None:
        stop.wait()
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=end, daemon=True).start()
    config = load(file)
    app = build_app(Tables(config.tables.root), config)
    try:
        serve(app, config.serve, on_listening=_tell)
    except ConfigError:
        # Another process has the port.
        serve(app, config.serving_on(port=0).serve, on_listening=_tell)


def _tell(url: str) -> None:
    print(url, flush=True)  # noqa: T201 - the demo reads it


if __name__ == "__main__":
    logs.configure()
    _serve_until_the_demo_ends(Path(sys.argv[1]))
