#!/usr/bin/env bash
# Installs the EFA software (libfabric, aws-ofi-nccl, Open MPI) from AWS's installer into an image being built.
# Reads EFA_INSTALLER_VERSION and, optionally, EFA_INSTALLER_SHA256. IMAGE_ROOT stands in front of every path (tests).
# The kernel module, ulimits and the final test need a host, hence the three --skip / --no flags.
# Source: EC2 user guide "Install the EFA software in a container", retrieved 2026-11-20.
set -euo pipefail

readonly URL=https://efa-installer.amazonaws.com
readonly ROOT=${IMAGE_ROOT:-}
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

fail() {
  echo "install-efa: $*" >&2
  exit 1
}

# Whether version $1 is $2 or newer.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# The SHA-256 that is known for version $1: the caller's, else the table's, else nothing.
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
    echo "install-efa: no checksum is published here for $version; got sha256 $actual (set EFA_INSTALLER_SHA256 to hold later builds to it)"
  elif [ "$expected" != "$actual" ]; then
    fail "EFA_INSTALLER_VERSION $version: must have sha256 $expected, got $actual; do not use this file"
  else
    echo "install-efa: sha256 of $version is as expected"
  fi
}

# From 1.48 on the installer takes images with /opt/nvidia/nvidia_entrypoint.sh (plain nvidia/cuda too) for NGC images and leaves
# the plugin or rdma-core out. The flag against it has two names by distribution; those that this installer knows are given.
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
  # Not local: the trap runs after main has returned.
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  curl --fail --silent --show-error --location --retry 3 \
    --connect-timeout 20 --speed-limit 1024 --speed-time 60 --output "$work/efa.tar.gz" "$URL/aws-efa-installer-$version.tar.gz"
  verify "$version" "$work/efa.tar.gz"
  tar -xzf "$work/efa.tar.gz" -C "$work"
  cd "$work/aws-efa-installer"
  mapfile -t flags < <(ngc_flags "$version" efa_installer.sh)
  # A failure inside <( ) does not end the script.
  if at_least "$version" 1.48.0 && [ "${#flags[@]}" -eq 0 ]; then exit 1; fi
  # The installer installs packages without fetching the lists, which images delete.
  apt-get update
  ./efa_installer.sh -y --skip-kmod --skip-limit-conf --no-verify "${flags[@]}"
  # Under the name that NCCL opens; which folders the loader searches is the self-test's business.
  compgen -G "$ROOT/opt/amazon/ofi-nccl/lib*/libnccl-net.so" >/dev/null ||
    compgen -G "$ROOT/opt/amazon/ofi-nccl/lib/*/libnccl-net.so" >/dev/null ||
    fail "EFA_INSTALLER_VERSION $version: must leave libnccl-net.so, the NCCL plugin, in /opt/amazon/ofi-nccl, got none; use 1.38.0 or later"
}

main "$@"
