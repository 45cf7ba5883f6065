#!/usr/bin/env bash
# Installs the EFA software (libfabric, aws-ofi-nccl, Open MPI) with AWS's installer while an image is built.
# Reads EFA_INSTALLER_VERSION and, optionally, EFA_INSTALLER_SHA256. IMAGE_ROOT is a prefix of all paths (for tests).
# The kernel module, the limits and the installer's test need a host and are disabled with flags.
# Source: EC2 user guide "Install the EFA software in a container", retrieved 2026-11-20.
set -euo pipefail

readonly URL=https://efa-installer.amazonaws.com
readonly ROOT=${IMAGE_ROOT:-}
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

fail() {
  echo "install-efa: $*" >&2
  exit 1
}

# True if version $1 is $2 or later.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# The SHA-256 for version $1: EFA_INSTALLER_SHA256, otherwise from the table, otherwise empty.
known_sha256() {
  if [ -n "${EFA_INSTALLER_SHA256:-}" ]; then
    echo "$EFA_INSTALLER_SHA256"
  else
    awk -v version="$1" '$1 == version { print $2 }' "$HERE/efa-installer.sha256"
  fi
}

verify() {
  local version=$1 file=$2 expected actual
  expected=$(known_sha256 "$version")
  actual=$(sha256sum "$file" | cut -d ' ' -f 1)
  if [ -z "$expected" ]; then
    echo "install-efa: no checksum is known for $version; got sha256 $actual (set EFA_INSTALLER_SHA256 to require it in later builds)"
  elif [ "$expected" != "$actual" ]; then
    fail "EFA_INSTALLER_VERSION $version: must have sha256 $expected, got $actual; do not use this file"
  else
    echo "install-efa: sha256 of $version is as expected"
  fi
}

# Since 1.48 the installer treats images with /opt/nvidia/nvidia_entrypoint.sh (including plain nvidia/cuda) as NGC images and skips
# the plugin or rdma-core. The flag that disables this has two names, depending on the distribution; all names that the script knows are
# passed.
ngc_flags() {
  local version=$1 script=$2 flag found=()
  at_least "$version" 1.48.0 || return 0
  for flag in --disable-ngc --disable-build-ngc; do
    if grep -q -- "$flag" "$script"; then found+=("$flag"); fi
  done
  [ "${#found[@]}" -gt 0 ] || fail "EFA_INSTALLER_VERSION $version: must know --disable-ngc, got neither form in efa_installer.sh; use another version"
  printf '%s\n' "${found[@]}"
}

main() {
  local version=${EFA_INSTALLER_VERSION:?must name a release of the EFA installer} flags
  # Global, because the trap runs after main has returned.
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  curl --fail --silent --show-error --location --retry 3 \
    --connect-timeout 20 --speed-limit 1024 --speed-time 60 --output "$work/efa.tar.gz" "$URL/aws-efa-installer-$version.tar.gz"
  verify "$version" "$work/efa.tar.gz"
  tar -xzf "$work/efa.tar.gz" -C "$work"
  cd "$work/aws-efa-installer"
  mapfile -t flags < <(ngc_flags "$version" efa_installer.sh)
  # A failure in a process substitution does not end the script.
  if at_least "$version" 1.48.0 && [ "${#flags[@]}" -eq 0 ]; then exit 1; fi
  # The installer does not update the package lists, which base images delete.
  apt-get update
  ./efa_installer.sh -y --skip-kmod --skip-limit-conf --no-verify "${flags[@]}"
  # The name that NCCL opens; the self-test checks the search path of the loader.
  compgen -G "$ROOT/opt/amazon/ofi-nccl/lib*/libnccl-net.so" >/dev/null ||
    compgen -G "$ROOT/opt/amazon/ofi-nccl/lib/*/libnccl-net.so" >/dev/null ||
    fail "EFA_INSTALLER_VERSION $version: must put libnccl-net.so, the NCCL plugin, in /opt/amazon/ofi-nccl, got none; use 1.38.0 or later"
}

main "$@"
