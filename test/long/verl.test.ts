// The run file of verl against the configuration of the verl that PyPI has: every option that the example and the run file set must be one
// that verl knows, with a value of its type. Training itself needs GPUs.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { flagArguments } from '../../lib/core/distribution/strategy';
import { ROOT } from '../e2e/support/sandbox';

const PYTHON = path.join(ROOT, '.slipway/verl/bin/python');
/** Composes verl's own configuration with overrides, and prints what became of them; Hydra refuses a name that is not there. */
const COMPOSE = `
import json, os, sys
from importlib.util import find_spec
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
[home] = find_spec("verl").submodule_search_locations
program, *overrides = sys.argv[1:]
assert os.path.exists(os.path.join(home, *program.split(".")[1:]) + ".py"), program
with initialize_config_dir(config_dir=os.path.join(home, "trainer/config"), version_base=None):
    composed = compose(config_name="ppo_trainer", overrides=overrides)
names = [one.split("=", 1)[0] for one in overrides]
print(json.dumps({name: OmegaConf.select(composed, name) for name in names}, default=list))
`;
/** Writes its arguments down instead of running them, but for the line that counts hosts. */
const SHIM = `#!/bin/bash
if [[ "$1" == -c ]]; then exec ${PYTHON} "$@"; fi
printf '%s\\n' "$@" > "$CALLED"
`;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-verl-'));
  writeFileSync(path.join(folder, 'python3'), SHIM);
  chmodSync(path.join(folder, 'python3'), 0o755);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The command that grpo.sh ends with on two hosts, for arguments of a run file. */
function commandOf(given: Record<string, unknown>): string[] {
  const called = path.join(folder, 'called');
  const env = {
    PATH: `${folder}:${process.env.PATH}`,
    CALLED: called,
    ...{ SM_HOSTS: '["algo-1", "algo-2"]', SM_NUM_GPUS: '8' },
    ...{ SM_CHANNEL_PROMPTS: '/opt/ml/input/data/prompts', SM_CHANNEL_WEIGHTS: '/opt/ml/input/data/weights' },
  };
  const script = path.join(ROOT, 'runs/scripts/verl/grpo.sh');
  const { status, stderr } = spawnSync('bash', [script, ...flagArguments(given)], { env, encoding: 'utf8' });
  expect(status, stderr).toBe(0);
  return readFileSync(called, 'utf8').trim().split('\n').slice(1);
}

const composed = (command: string[]) => spawnSync(PYTHON, ['-c', COMPOSE, ...command], { encoding: 'utf8' });

const run = parse(readFileSync(path.join(ROOT, 'runs/trainers/qwen3-8b-verl-grpo.yaml'), 'utf8')) as {
  code: { arguments: Record<string, unknown> };
};

test('verl knows every option of the run file and of its script, and takes their values', () => {
  expect(existsSync(PYTHON), 'npm run test:long makes it').toBe(true);
  const { status, stdout, stderr } = composed(commandOf(run.code.arguments));
  expect(status, stderr).toBe(0);
  const found = JSON.parse(stdout) as Record<string, unknown>;
  expect(found).toMatchObject(run.code.arguments);
  expect(found).toMatchObject({ 'algorithm.adv_estimator': 'grpo', 'trainer.nnodes': 2, 'trainer.n_gpus_per_node': 8 });
});

test('fails: an option that verl does not know', () => {
  const unknown = composed(commandOf({ ...run.code.arguments, 'actor_rollout_ref.actor.learning_rate': 1e-6 }));
  expect([unknown.status, unknown.stderr]).toEqual([1, expect.stringContaining('learning_rate')]);
});
