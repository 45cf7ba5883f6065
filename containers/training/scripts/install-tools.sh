#!/usr/bin/env bash
# Installs optional packages of the trainer and the driver into the Python $1: AWS's S3 connector for checkpoints, and py-spy for the
# stacks of a hung rank. Without access to a package index, the image is built without them, and a message is printed.
set -euo pipefail
readonly PACKAGES=(s3torchconnector==1.5.0 py-spy==0.4.3)
python=${1:?must be the Python that runs the ranks}
for package in "${PACKAGES[@]}"; do
  # The image's PyTorch must not be replaced: the connector accepts any version.
  if ! "$python" -m pip install --no-cache-dir --disable-pip-version-check --upgrade-strategy only-if-needed "$package"; then
    echo "install-tools: $package could not be installed; continuing without it"
  fi
done
