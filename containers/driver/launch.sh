#!/usr/bin/env bash
# The first program of every job. It finds a Python interpreter and replaces itself (exec) with the first process of the container, which
# receives SIGTERM directly and starts the driver. The driver's files are in the same folder, the `driver` channel.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
python="$(command -v python3 || command -v python || true)"
if [[ -z "$python" ]]; then
  base="${SAGEMAKER_BASE_DIR:-/opt/ml}"
  mkdir -p "$base/output"
  echo '{"slipway":1,"class":"environment","code":77,"reason":"the image has neither python3 nor python on its PATH"}' \
    | tee "$base/output/failure" >&2
  exit 77
fi
# -B: the channel may be read-only. PYTHONPATH first: the driver's modules take precedence over modules of the same name in the image.
export PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}"
exec "$python" -B -u -m slipway_driver
