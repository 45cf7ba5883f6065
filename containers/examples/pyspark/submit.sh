#!/usr/bin/env bash
# Every instance runs this. smspark-submit, which the SageMaker Spark image brings, forms the cluster from the
# job's resourceconfig.json; the first instance then runs the script and the others serve it.
set -euo pipefail
exec smspark-submit "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/drop_duplicates.py" "$@"
