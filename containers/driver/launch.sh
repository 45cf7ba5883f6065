#!/usr/bin/env bash
# First program of every job that Slipway starts. It only finds a Python and hands over with exec, so that SIGTERM reaches the
# driver itself. The files of the driver lie beside it in the `driver` channel.
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
# -B: the channel may be read-only. PYTHONPATH first: an image that carries modules of our names must not win.
export PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}"
exec "$python" -B -u -m slipway_driver
