#!/usr/bin/env bash
# Creates the virtual environment $1 with PyTorch PYTORCH_VERSION; its wheel contains NCCL. Does not leave a cache.
set -euo pipefail
folder=${1:?must be the folder of the virtual environment}
version=${PYTORCH_VERSION:?must name a release of PyTorch}
python3 -m venv "$folder"
"$folder/bin/python" -m pip install --no-cache-dir "torch==$version" numpy
"$folder/bin/python" -c 'import torch, sys; sys.exit(0 if torch.version.cuda else "install-pytorch: PYTORCH_VERSION: must be a build with CUDA, got one without; use another version")'
