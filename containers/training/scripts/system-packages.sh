#!/usr/bin/env bash
# Installs Debian or Ubuntu packages and leaves no lists behind; `--purge` first removes what would stand in EFA's way.
# A distribution's own RDMA packages and HPC-X clash with the installer's rdma-core and Open MPI.
set -euo pipefail
readonly ROOT=${IMAGE_ROOT:-}
export DEBIAN_FRONTEND=noninteractive

if [ "${1:-}" = --purge ]; then
  shift
  for package in libibverbs1 ibverbs-utils libmlx5-1 openmpi-bin; do
    if dpkg-query --show "$package" >/dev/null 2>&1; then apt-get purge -y "$package"; fi
  done
  rm -rf "$ROOT/opt/hpcx"
fi
apt-get update
apt-get install -y --no-install-recommends "$@"
apt-get clean
rm -rf "$ROOT/var/lib/apt/lists"
mkdir -p "$ROOT/var/lib/apt/lists/partial"
# A host key that is built in would be the same, and known, in every copy of the image; the launcher that needs ssh makes its own.
rm -f "$ROOT"/etc/ssh/ssh_host_*_key "$ROOT"/etc/ssh/ssh_host_*_key.pub
