"""The script `lagwise`, which is also installed for consumers, without the packages that commands need."""

import sys

from pipeline.operate.extras import remedy


def main() -> None:
    """Run the command, or print in one line what to install for it."""
    try:
        from pipeline.operate.cli.app import main as run  # noqa: PLC0415 - an extra, which may be missing
    except ModuleNotFoundError as error:
        what = remedy(error)
        if what is None:
            raise
        sys.exit(f"lagwise: {what}")
    run()
