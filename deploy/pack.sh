#!/usr/bin/env bash
# The Python environment of executors in one archive: deploy/pack.sh [OUT.tar.gz], for LAGWISE_ENVIRONMENT of submit.sh
#
#   PYTHON  the Python that it is made with; default: the one of the virtual environment
#
# It holds what tasks import, in the pinned versions, and neither Spark nor lagwise: executors have their own Spark, and
# are sent the code at each start. It may be unpacked anywhere. It does not hold Python itself: each host needs the
# Python that it was made with, at the same path, and the same kind of machine (`bin/python` is a link).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv="$here/.venv/bin/python"
[ -x "$venv" ] || { echo "pack.sh: no $venv: run 'make setup' first" >&2; exit 1; }
out="${1:-$here/build/lagwise-environment.tar.gz}"
python="${PYTHON:-$("$venv" -c 'import sys; print(sys._base_executable)')}"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$python" -m venv --without-pip "$scratch/environment"
"$venv" -c '
from importlib.metadata import requires
for line in requires("lagwise"):
    need, _, marker = line.partition("; ")
    own, _, extra = marker.rpartition("extra == ")
    if extra.strip("\"\x27") in ("", "stream") and not need.startswith(("pyspark", "delta-spark")):
        print(need, own.removesuffix(" and "), sep="; " if own else "")
' >"$scratch/requirements.txt"
"$venv" -m pip --python "$scratch/environment/bin/python" install --quiet --disable-pip-version-check --no-compile \
  -c "$here/deploy/constraints.txt" -r "$scratch/requirements.txt"
mkdir -p "$(dirname "$out")"
tar -C "$scratch/environment" --exclude=__pycache__ --exclude='pandas/tests' --exclude='pyarrow/tests' \
  --exclude='pyarrow/include' -czf "$out" .
echo "$out"
