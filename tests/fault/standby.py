"""A driver as `pipeline/run/main.py --standby` runs it, that loses patience sooner: `standby.py CONFIG PATIENCE_S`."""

import sys
from pathlib import Path

from pipeline.run import main
from pipeline.tables.owner import standby

if __name__ == "__main__":
    standby.PATIENCE_S = float(sys.argv[2])
    sys.exit(main.run(Path(sys.argv[1]), once=False, is_standby=True))
