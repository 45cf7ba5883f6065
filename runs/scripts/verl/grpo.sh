#!/usr/bin/env bash
# GRPO with verl on the Ray cluster of the driver (RAY_ADDRESS): actor, rollout and reference model share every GPU.
# Arguments of the run file become Hydra overrides: `--name value` becomes `name=value`, and `--name` alone, which stands for `true`,
# becomes `name=true`. `false` is not passed on; write "false" as a string. Options: https://verl.readthedocs.io,
# examples/grpo_trainer of github.com/volcengine/verl (2026-11-22). A test checks the options with verl 0.9.1; verl itself needs GPUs and
# was not run.
set -euo pipefail

overrides=()
while [[ $# -gt 0 ]]; do
  name="${1#--}" value=true
  if [[ $# -ge 2 && "$2" != --* ]]; then
    value="$2"
    shift
  fi
  overrides+=("$name=$value")
  shift
done

hosts="$(python3 -c 'import json, os; print(len(json.loads(os.environ["SM_HOSTS"])))')"

exec python3 -m verl.trainer.main_ppo \
  algorithm.adv_estimator=grpo \
  data.train_files="$SM_CHANNEL_PROMPTS/train.parquet" \
  data.val_files="$SM_CHANNEL_PROMPTS/test.parquet" \
  actor_rollout_ref.model.path="$SM_CHANNEL_WEIGHTS" \
  actor_rollout_ref.model.enable_gradient_checkpointing=True \
  actor_rollout_ref.actor.use_kl_loss=True \
  actor_rollout_ref.rollout.name=vllm \
  trainer.n_gpus_per_node="$SM_NUM_GPUS" \
  trainer.nnodes="$hosts" \
  trainer.default_local_dir=/opt/ml/checkpoints \
  trainer.resume_mode=auto \
  "trainer.logger=[console]" \
  "${overrides[@]}"
