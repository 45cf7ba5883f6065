#!/usr/bin/env bash
# Every instance runs this script. smspark-submit, which is part of the SageMaker Spark image, forms the cluster from the job's
# resourceconfig.json; the first instance then runs the Python script and the others are its workers.
set -euo pipefail
exec smspark-submit "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/drop_duplicates.py" "$@"
