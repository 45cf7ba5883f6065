#!/usr/bin/env bash
# Installs Debian or Ubuntu packages and deletes the package lists. `--purge` first removes packages that conflict with EFA:
# the distribution's RDMA packages and HPC-X conflict with the installer's rdma-core and Open MPI.
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
# A host key in the image would be the same in every container and known to all its users. A launcher that needs ssh creates its own key.
rm -f "$ROOT"/etc/ssh/ssh_host_*_key "$ROOT"/etc/ssh/ssh_host_*_key.pub
