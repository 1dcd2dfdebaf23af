#!/usr/bin/env bash
# lagwise in a folder of its own, ready to run without a network: install.sh SOURCE TARGET
#
# TARGET becomes a virtual environment with the stream and `lagwise serve`; TARGET/cache has the jars, and an archive of their
# classes with which a start takes half the time. Run it with XDG_CACHE_HOME=TARGET/cache. Needs Python 3.10 or newer, Java 17 or
# 21, and for this once PyPI and Maven Central.
#
#   PYTHON    another Python than python3
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: install.sh SOURCE TARGET" >&2; exit 2; }
source=$(cd "$1" && pwd)
mkdir -p "$2"
target=$(cd "$2" && pwd)
python="$target/bin/python"
export PIP_DISABLE_PIP_VERSION_CHECK=1 XDG_CACHE_HOME="$target/cache"

"${PYTHON:-python3}" -m venv "$target"
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
"$python" -m pip wheel --quiet --no-deps --wheel-dir "$wheels" "$source"
wheel=("$wheels"/lagwise-*.whl)
"$python" -m pip install --quiet --constraint "$source/deploy/constraints.txt" "${wheel[0]}[stream,serve]"
# pip leaves code of the same version that is there already, however old.
"$python" -m pip install --quiet --no-deps --force-reinstall "${wheel[0]}"

# From here on it is the installed package that runs, not what lies in the working directory.
cd "$target"
# The broker's jars are for the rehearsal only.
broker_jars=$("$python" -c '
import sys
from pathlib import Path
from pipeline.local.embedded.config import KAFKA
from pipeline.local.jars import resolve, resolve_for_spark
from pipeline.run.spark.session import PACKAGES
report = lambda line: print(line, file=sys.stderr)
resolve_for_spark(PACKAGES, report=report)
print(resolve(KAFKA, report=report)[0].parent)')

# The archive goes by the times of the jars, of which an image keeps whole seconds.
find "$target" -name '*.jar' -exec touch --date="@${SOURCE_DATE_EPOCH:-1767225600}" {} +
"$python" -m pipeline.operate.fetch

rm -rf "$broker_jars" "$XDG_CACHE_HOME/lagwise/ivy" "$XDG_CACHE_HOME"/lagwise/class-data/kafka-*
chmod -R a+rX "$target"
