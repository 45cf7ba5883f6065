#!/usr/bin/env bash
# Stands in for AWS's EFA installer in `npm run test:image`: the same flags, packages by apt without fetching lists, files where AWS's
# packages put them (libfabric and Open MPI under /opt/amazon, the plugin under both of its names).
# usage: -y --skip-kmod --skip-limit-conf --no-verify --disable-ngc --disable-build-ngc
set -euo pipefail
disable_ngc=""
for flag in "$@"; do
  case "$flag" in
    -y | --skip-kmod | --skip-limit-conf | --no-verify) ;;
    --disable-ngc | --disable-build-ngc) disable_ngc=1 ;;
    *) echo "efa_installer.sh: unknown option $flag" >&2; exit 1 ;;
  esac
done
apt-get install -y environment-modules libnl-3-200 || { echo "Error: failed to install packages" >&2; exit 1; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p /opt/amazon/efa/{bin,lib} /opt/amazon/openmpi/{bin,lib} /opt/amazon/ofi-nccl/lib
install -m 755 "$here/fi_info" /opt/amazon/efa/bin/fi_info
install -m 755 "$here/mpirun" /opt/amazon/openmpi/bin/mpirun
cp "$here/libfabric.so.1" /opt/amazon/efa/lib/
# As from 1.48 on: an image with NVIDIA's entrypoint is taken for one of NGC, and gets no plugin.
if [ -x /opt/nvidia/nvidia_entrypoint.sh ] && [ -z "$disable_ngc" ]; then
  echo "NGC image: the plugin is left out"
  exit 0
fi
cp "$here/libnccl-net.so" /opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so
ln -s libnccl-net-ofi.so /opt/amazon/ofi-nccl/lib/libnccl-net.so
