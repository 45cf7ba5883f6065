#!/usr/bin/env bash
# Starts `accelerate launch` on each host, here for the DPO script of TRL; the arguments of the run file go to the script.
set -euo pipefail
hosts="$(python3 -c 'import json, os; print(len(json.loads(os.environ["SM_HOSTS"])))')"
rank="$(python3 -c 'import json, os; print(json.loads(os.environ["SM_HOSTS"]).index(os.environ["SM_CURRENT_HOST"]))')"
exec accelerate launch --multi_gpu --mixed_precision bf16 \
  --num_machines "$hosts" --machine_rank "$rank" --num_processes "$((hosts * SM_NUM_GPUS))" \
  --main_process_ip "$MASTER_ADDR" --main_process_port "$MASTER_PORT" -m trl.scripts.dpo "$@"
