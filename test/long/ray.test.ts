// A run under the Ray of PyPI on the embedded AWS: launched with the command line, started by the driver on two hosts. A worker that dies is
// started again by Ray within the job; a host that dies ends the attempt, and the next one goes on from the managed checkpoint.
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { adminOf } from '../../lib/sandbox/testing';
import { type Deployed, deployedSandbox, TWO_CPU_HOSTS } from '../e2e/support/deployed';
import { ROOT } from '../e2e/support/sandbox';

const STEPS = 24;
const RUN = `name: actors
code: { source: ./src, entryPoint: train.py, arguments: { steps: ${STEPS} } }
compute: { instanceType: ml.m5.xlarge, instanceCount: 2 }
distribution: { launcher: ray }
progress: { stepRegex: "step=(\\\\d+)" }
checkpoints: { mode: managed }
limits: { maxRuntimeSeconds: 1800 }
`;
/** One actor on each host. Its sum is of the steps alone, so that an attempt that lost its place would show another. */
const TRAIN = `import argparse, json, os, pathlib, time
import ray

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int)
steps = parser.parse_args().steps
ray.init()
hosts = sorted(name for node in ray.nodes() for name in node["Resources"] if name.startswith("host:"))
state = pathlib.Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml")) / "checkpoints/state.json"
done, total = json.loads(state.read_text()) if state.exists() else (0, 0)
print("begins behind step %d on %s" % (done, hosts), flush=True)

@ray.remote(num_cpus=0, max_restarts=3, max_task_retries=3)
class Worker:
    def __init__(self):
        print("worker of", os.environ["SM_CURRENT_HOST"], flush=True)

    def part(self, step):
        time.sleep(0.25)
        return step * len(os.environ["SM_CURRENT_HOST"])

workers = [Worker.options(resources={host: 1}).remote() for host in hosts]
for step in range(done + 1, steps + 1):
    total += sum(ray.get([worker.part.remote(step) for worker in workers]))
    if step % 4 == 0:
        state.parent.mkdir(exist_ok=True)
        state.write_text(json.dumps([step, total]))
    print("step=%d total=%d" % (step, total), flush=True)
`;

let deployed: Deployed;
beforeAll(async () => {
  deployed = await deployedSandbox(
    TWO_CPU_HOSTS.environment,
    TWO_CPU_HOSTS.quotas,
    { pythonBin: path.join(ROOT, '.slipway/ray/bin/python') },
    { 'runs/actors.yaml': RUN, 'runs/src/train.py': TRAIN },
  );
});
afterAll(() => deployed?.end());

interface Attempt {
  status: string;
  reason: string;
  firstStep: number;
  lastStep: number;
}

/** Launches the run and waits for its end; answers its state, its attempts and its log. */
async function played(runId: string) {
  await deployed.slipway(
    'launch',
    path.join(deployed.folder, 'runs/actors.yaml'),
    '--yes',
    '--json',
    '--run-id',
    runId,
  );
  const { code, stdout } = await deployed.tryCall(process.execPath, [
    ...[path.join(ROOT, 'dist/cli/slipway.mjs'), 'status', runId, '--wait', '--json'],
    ...['--environment', 'e2e', '--region', 'us-west-2'],
  ]);
  const status = JSON.parse(stdout) as { state: string; attempts: Attempt[] };
  const lines = (await deployed.slipway('logs', runId, '--json')).split('\n').filter((line) => line !== '');
  const told = lines.map((line) => JSON.parse(line) as { attempt: number; message: string });
  const logs = status.attempts.map((_, i) => told.filter((l) => l.attempt === i + 1).map((l) => l.message));
  return { code, ...status, logs };
}

/** Of both hosts, whose names have six letters. */
const TOTAL = ((STEPS * (STEPS + 1)) / 2) * 12;

test('a worker that dies is started again by Ray, in the same job', async () => {
  await adminOf(deployed).fault({
    ...{ kind: 'instance-killed', jobName: 'e2e-worker-*', as: 'container' },
    ...{ host: 2, process: 'ray::Worker', logMatches: 'step=6 ' },
  });
  const { state, attempts, logs } = await played('worker');
  const [log = []] = logs;
  expect([state, attempts.map((a) => a.status)], log.join('\n')).toEqual(['completed', ['Completed']]);
  expect(log).toContain("begins behind step 0 on ['host:algo-1', 'host:algo-2']");
  expect(log.filter((line) => line.includes('worker of algo-2')).length).toBe(2);
  expect(log.filter((line) => line.startsWith('step=')).at(-1)).toBe(`step=${STEPS} total=${TOTAL}`);
});

test.each([
  // Its driver is still there to say what happened.
  { runId: 'node', dies: { process: 'raylet/raylet' }, says: "a host's hardware broke on algo-2: Ray's processes" },
  // SageMaker knows the exit code alone.
  { runId: 'host', dies: {}, says: 'a host was lost' },
])('a lost $runId ends the attempt, and the next one goes on from the checkpoint', async ({ runId, dies, says }) => {
  await adminOf(deployed).fault({
    ...{ kind: 'instance-killed', jobName: `e2e-${runId}-a001`, as: 'container' },
    ...{ host: 2, logMatches: 'step=10 ', ...dies },
  });
  const { state, attempts, logs } = await played(runId);
  const [first = [], second = []] = logs;
  expect([state, attempts.map((a) => a.status)], first.join('\n')).toEqual(['completed', ['Failed', 'Completed']]);
  expect(attempts[0]?.reason).toContain(says);
  const began = second.find((line) => line.startsWith('begins behind step')) ?? '';
  const from = Number(/step (\d+)/.exec(began)?.[1]);
  expect([8, 12]).toContain(from);
  expect(attempts[1]?.firstStep).toBe(from + 1);
  expect(second.filter((line) => line.startsWith('step=')).at(-1)).toBe(`step=${STEPS} total=${TOTAL}`);
});
