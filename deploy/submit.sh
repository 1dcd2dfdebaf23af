#!/usr/bin/env bash
# The stream by spark-submit: deploy/submit.sh --config FILE [--once | --standby]
#
#   SPARK_SUBMIT   another spark-submit than the virtual environment's, for example a cluster's
#   SUBMIT_ARGS    more options for it, for example "--master yarn --deploy-mode client --driver-memory 4g"
#
# Delta comes as --jars from the cache that `make setup` fills, so that a machine without a network can submit; on the
# driver's class path too, so that it takes the archive of its classes that `make setup` made. Executors need this
# Python environment too: same path, or PYSPARK_PYTHON.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python="$here/.venv/bin/python"
[ -x "$python" ] || { echo "submit.sh: no $python: run 'make setup' first" >&2; exit 1; }

export PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}"
export PYSPARK_PYTHON="${PYSPARK_PYTHON:-$python}"
export PYSPARK_DRIVER_PYTHON="$python"

{ read -r jars; read -r class_path; read -r shared_classes; } < <("$python" -c '
from pipeline.local import class_data
from pipeline.local.jars import resolve_for_spark
from pipeline.run.session import PACKAGES, shared_classes
jars = resolve_for_spark(PACKAGES)
print(*jars, sep=",")
print(*jars, sep=":")
print(class_data.one_line(shared_classes(jars)))')
# The archive is of the Spark of this environment, and a cluster's may have a class path of its own.
own=()
if [ -z "${SPARK_SUBMIT:-}" ] && [ -n "$shared_classes" ]; then
  own=(--driver-class-path "$class_path" --driver-java-options "$shared_classes")
fi
read -ra more <<<"${SUBMIT_ARGS:-}"
exec "${SPARK_SUBMIT:-$here/.venv/bin/spark-submit}" \
  --jars "$jars" \
  --driver-memory 2g \
  --conf spark.driver.defaultJavaOptions="-Dlog4j2.configurationFile=$here/pipeline/run/log4j2.properties" \
  "${own[@]}" \
  "${more[@]}" \
  "$here/pipeline/run/main.py" "$@"
