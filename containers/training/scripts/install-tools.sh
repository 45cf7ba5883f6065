#!/usr/bin/env bash
# Adds to the Python $1 what the trainer and the driver use where it is there: AWS's S3 connector for checkpoints, py-spy for the stacks
# of a hung rank. Both are optional: without access to a package index the image is built without them, and says so.
set -euo pipefail
readonly PACKAGES=(s3torchconnector==1.5.0 py-spy==0.4.3)
python=${1:?must be the Python that runs the ranks}
for package in "${PACKAGES[@]}"; do
  # PyTorch must stay the image's own: the connector accepts any.
  if ! "$python" -m pip install --no-cache-dir --disable-pip-version-check --upgrade-strategy only-if-needed "$package"; then
    echo "install-tools: $package could not be installed and is left out"
  fi
done
