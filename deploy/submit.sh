#!/usr/bin/env bash
# The stream by spark-submit: deploy/submit.sh --config FILE [--once | --standby]
#
#   SPARK_SUBMIT         another spark-submit than the virtual environment's, for example a cluster's
#   SUBMIT_ARGS          more options for it, for example "--master spark://spark:7077 --total-executor-cores 4"
#   LAGWISE_ENVIRONMENT  archive of deploy/pack.sh (.tar.gz): executors unpack it, and run its Python
#   LAGWISE_FILES        files, separated by commas, that executors find in their working folders, such as "ca.pem"
#
# No path has to be the same on two hosts: the code of this checkout goes to the executors, and their Python comes from
# LAGWISE_ENVIRONMENT. Without it, PYSPARK_PYTHON names a Python with the dependencies that every host has.
# Delta comes as --jars from the cache that `make setup` fills, so that a machine without a network can submit; on the
# driver's class path too, so that it takes the archive of its classes that `make setup` made.
# deploy/docs/deploying-spark.md says more, also of `--deploy-mode cluster`.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python="$here/.venv/bin/python"
[ -x "$python" ] || { echo "submit.sh: no $python: run 'make setup' first" >&2; exit 1; }

export PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}"
read -ra more <<<"${SUBMIT_ARGS:-}"
{ read -r code; read -r jars; read -r class_path; read -r shared_classes; } < <("$python" -c '
from pipeline.local import class_data, shipped_code
from pipeline.local.jars import resolve_for_spark
from pipeline.run.session import PACKAGES, shared_classes
jars = resolve_for_spark(PACKAGES)
print(shipped_code.zipped())
print(*jars, sep=",")
print(*jars, sep=":")
print(class_data.one_line(shared_classes(jars)))')

files="${LAGWISE_FILES:-}"
shipped=(--py-files "$code")
if [ -n "${LAGWISE_ENVIRONMENT:-}" ]; then
  [ -f "$LAGWISE_ENVIRONMENT" ] || { echo "submit.sh: no $LAGWISE_ENVIRONMENT: make it by deploy/pack.sh" >&2; exit 1; }
  shipped+=(--archives "$LAGWISE_ENVIRONMENT#environment")
  export PYSPARK_PYTHON=./environment/bin/python
fi
export PYSPARK_PYTHON="${PYSPARK_PYTHON:-$python}"
export PYSPARK_DRIVER_PYTHON="$python"

is_elsewhere=
case " ${more[*]-} " in
  *" --deploy-mode cluster "* | *"deployMode=cluster "*)
    is_elsewhere=1
    # The driver is on some host of the cluster: it has what is shipped, in its working folder, and nothing else.
    arguments=()
    while [ $# -gt 0 ]; do
      if [ "$1" = --config ]; then
        files="$2${files:+,$files}"
        arguments+=(--config "$(basename "$2")")
        shift 2
      else
        arguments+=("$1")
        shift
      fi
    done
    set -- "${arguments[@]}"
    files="$here/pipeline/run/log4j2.properties${files:+,$files}"
    own=(
      --conf "spark.yarn.appMasterEnv.PYSPARK_PYTHON=$PYSPARK_PYTHON"
      --conf "spark.yarn.appMasterEnv.PYSPARK_DRIVER_PYTHON=$PYSPARK_PYTHON"
      --conf spark.driver.defaultJavaOptions=-Dlog4j2.configurationFile=log4j2.properties
    )
    ;;
  *)
    own=(--conf "spark.driver.defaultJavaOptions=-Dlog4j2.configurationFile=$here/pipeline/run/log4j2.properties")
    # The archive is of the Spark of this environment, and a cluster's may have a class path of its own.
    if [ -z "${SPARK_SUBMIT:-}" ] && [ -n "$shared_classes" ]; then
      own+=(--driver-class-path "$class_path" --driver-java-options "$shared_classes")
    fi
    ;;
esac
[ -z "$files" ] || shipped+=(--files "$files")

command=(
  "${SPARK_SUBMIT:-$here/.venv/bin/spark-submit}"
  --jars "$jars"
  --driver-memory 2g
  "${shipped[@]}"
  "${own[@]}"
  ${more[@]+"${more[@]}"}
  "$here/pipeline/run/main.py"
  "$@"
)
[ -z "$is_elsewhere" ] || exec "${command[@]}"

# Told to end, Spark's JVM would stop Spark in the middle of a batch. So it is not to hear it; the driver's Python is, and
# ends when the batch is done. It hears nothing before it has begun, hence again and again.
(trap '' TERM INT && exec "${command[@]}") &
jvm=$!
stop() {
  heard=
  while kill -0 "$jvm" 2>/dev/null; do
    if pkill -TERM -P "$jvm"; then
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
