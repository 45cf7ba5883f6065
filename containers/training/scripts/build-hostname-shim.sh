#!/usr/bin/env bash
# Compiles the hostname shim into folder $1. It is skipped if there is no compiler: only the mpi launcher uses it.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=${1:?must be the folder for libslipway-hostname.so}
compiler=$(command -v cc || command -v gcc || true)
if [ -z "$compiler" ]; then
  echo "build-hostname-shim: no C compiler in the base image; the shim is not built (launcher mpi needs it)"
  exit 0
fi
mkdir -p "$folder"
"$compiler" -shared -fPIC -O2 -Wall -Wextra -Werror -o "$folder/libslipway-hostname.so" "$HERE/hostname_shim.c" -ldl
