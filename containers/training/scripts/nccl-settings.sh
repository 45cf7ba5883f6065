#!/usr/bin/env bash
# Files that NCCL and the plugin need in addition to their own. IMAGE_ROOT is a prefix of all paths (for tests).
set -euo pipefail
readonly ROOT=${IMAGE_ROOT:-}

# The plugin opens the unversioned libcudart.so, which runtime images do not have; plugin initialization would fail without it.
link_cudart() {
  local folder=$ROOT/usr/local/cuda/lib64 newest
  [ -d "$folder" ] || return 0
  if [ -e "$folder/libcudart.so" ]; then return 0; fi
  newest=$(find "$folder/" -maxdepth 1 -name 'libcudart.so.*' | sort -V | tail -n 1)
  if [ -z "$newest" ]; then
    echo "nccl-settings: /usr/local/cuda/lib64 must contain libcudart.so.*, got none; use a base image with the CUDA runtime" >&2
    exit 1
  fi
  ln -s "$(basename "$newest")" "$folder/libcudart.so"
}

# Only docker and loopback are excluded: excluding eth breaks NCCL's bootstrap. Environment variables override this file.
write_nccl_conf() {
  mkdir -p "$ROOT/etc"
  echo 'NCCL_SOCKET_IFNAME=^docker0,lo' >"$ROOT/etc/nccl.conf"
}

link_cudart
write_nccl_conf
