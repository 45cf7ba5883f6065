#!/usr/bin/env bash
# Starts LLaMA-Factory with the configuration beside this file; it starts torchrun itself.
set -euo pipefail
NNODES="$(python3 -c 'import json, os; print(len(json.loads(os.environ["SM_HOSTS"])))')"
NODE_RANK="$(python3 -c 'import json, os; print(json.loads(os.environ["SM_HOSTS"]).index(os.environ["SM_CURRENT_HOST"]))')"
export NNODES NODE_RANK NPROC_PER_NODE="$SM_NUM_GPUS" FORCE_TORCHRUN=1
exec llamafactory-cli train llama-factory.yaml "$@"
