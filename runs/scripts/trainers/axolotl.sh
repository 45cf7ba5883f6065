#!/usr/bin/env bash
# Starts axolotl with the configuration beside this file; the arguments of the run file replace its options.
set -euo pipefail
hosts="$(python3 -c 'import json, os; print(len(json.loads(os.environ["SM_HOSTS"])))')"
rank="$(python3 -c 'import json, os; print(json.loads(os.environ["SM_HOSTS"]).index(os.environ["SM_CURRENT_HOST"]))')"
exec torchrun --nnodes "$hosts" --node-rank "$rank" --nproc-per-node "$SM_NUM_GPUS" \
  --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" -m axolotl.cli.train axolotl.yaml "$@"
