#!/usr/bin/env bash
# Installs packages of the trainer and the driver into the Python $1: AWS's S3 connector for checkpoints, py-spy for the stacks of a hung
# rank, the packages of the tokenise and fetch steps, and the library of 4-bit weights. If the package index cannot be reached or does not have a package, the image is built without it; its name is printed and
# written to $2/left-out-tools, which the self-test reads. If the index has the package, but not this version, the build fails.
set -euo pipefail
readonly PACKAGES=(s3torchconnector==1.5.0 py-spy==0.4.3 tokenizers==0.23.3 huggingface_hub==2.4.0 bitsandbytes==0.50.2)
python=${1:?must be the Python that runs the ranks}
record=${2:?must be the folder for the list of packages that are left out}/left-out-tools
pip() {
  "$python" -m pip "$@" --no-cache-dir --disable-pip-version-check
}
mkdir -p "$(dirname "$record")"
: > "$record"
for package in "${PACKAGES[@]}"; do
  name=${package%%==*}
  # The image's PyTorch must not be replaced: the connector accepts any version.
  if pip install --upgrade-strategy only-if-needed "$package"; then
    continue
  fi
  probe=$(mktemp -d)
  if pip download --quiet --no-deps --dest "$probe" "$name"; then
    echo "install-tools: $package: must be installable, because the package index has $name, got the error of pip above; use an index with this version and its dependencies" >&2
    exit 1
  fi
  rm -rf "$probe"
  echo "$name" >> "$record"
  echo "install-tools: the package index cannot be reached or does not have $name; continuing without it"
done
