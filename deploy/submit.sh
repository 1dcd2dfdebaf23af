#!/usr/bin/env bash
# The stream by spark-submit: deploy/submit.sh --config FILE [--once | --standby]
#
#   SPARK_SUBMIT         another spark-submit than the virtual environment's, for example a cluster's
#   SUBMIT_ARGS          more options for it, for example "--master spark://spark:7077 --total-executor-cores 4"; those
#                        with spaces in quotation marks; jars, files and archives join those of lagwise
#   LAGWISE_ENVIRONMENT  archive of deploy/pack.sh (.tar.gz): executors unpack it, and run its Python
#   LAGWISE_FILES        files, separated by commas, that executors find in their working folders, such as "ca.pem"
#
# No path has to be the same on two hosts: the code of this checkout goes to the executors, and their Python comes from
# LAGWISE_ENVIRONMENT. Without it, PYSPARK_PYTHON names a Python with the dependencies that every host has.
# Delta comes as --jars from the cache that `make setup` fills, so that a machine without a network can submit; on the
# driver's class path too, unless that is set already, so that it takes the archive of its classes that `make setup` made.
# deploy/docs/deploying-spark.md says more, also of `--deploy-mode cluster`.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python="$here/.venv/bin/python"
[ -x "$python" ] || { echo "submit.sh: no $python: run 'make setup' first" >&2; exit 1; }

# pipeline/operate/submit.py has the whole command; it says itself what is wrong. Modules of the working folder do not count.
# This checkout is on its path alone: YARN would give the path of what submits to containers too, where another version may
# lie in the same place.
line=()
while IFS= read -r -d '' word; do line+=("$word"); done < <(PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}" "$python" -c '
import sys
sys.path[:] = filter(None, sys.path)
from pipeline.operate.submit import main
sys.exit(main())' "$@")
[ "${#line[@]}" -gt 0 ] || exit 1
export PYSPARK_PYTHON="${line[1]}" PYSPARK_DRIVER_PYTHON="$python"
# Whatever else says how much, spark-env.sh too, counts before this.
export SPARK_DRIVER_MEMORY="${SPARK_DRIVER_MEMORY:-2g}"
command=("${line[@]:2}")
[ "${line[0]}" = client ] || exec "${command[@]}"
type -P pkill >/dev/null || {
  echo "submit.sh: no pkill on this host, by which the driver is told to end: install procps (procps-ng)" >&2
  exit 1
}

# Told to end, Spark's JVM would stop Spark in the middle of a batch, and the Python of its tasks would end them. So they
# are not to hear it; the driver's Python is, and ends when the batch is done. It hears nothing before it has begun,
# hence again and again.
(trap '' TERM INT && exec "${command[@]}") &
jvm=$!
stop() {
  heard=
  while kill -0 "$jvm" 2>/dev/null; do
    if pkill -TERM -P "$jvm" -f '/pipeline/run/main[.]py'; then
      heard=1
    elif [ -z "$heard" ]; then
      kill -KILL "$jvm" 2>/dev/null || true
    fi
    sleep 1
  done
}
trap stop TERM INT
wait "$jvm" || true
trap '' TERM INT
wait "$jvm"
