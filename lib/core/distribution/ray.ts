import { nearest } from '../catalog/nearest';
import { orList } from '../config/issue';
import { hostCount, trainingGroupsOf } from '../config/resolve-run';
import { mustBe, type Rule, rulesAbout, when } from '../config/rule';
import type { RunSpec } from '../config/run-spec';
import { acceleratorKind } from './image-version';
import { parameterPath } from './parameters';
import { dataParallelLayout, type ParallelLayout, strategy, trainingTypes } from './strategy';

/** Options that the driver sets itself; containers/driver/slipway_driver/ray_cluster/launch.py rejects the same ones. */
export const DRIVER_OPTIONS: readonly string[] = ['head', 'address', 'port', 'node-ip-address', 'block', 'temp-dir'];

/** Options that a run may set, from `ray start --help` of ray 2.60.0 (2026-11-22). */
export const RUN_OPTIONS: readonly string[] = [
  'object-store-memory',
  'num-cpus',
  'num-gpus',
  'memory',
  'resources',
  'labels',
  'plasma-directory',
  'object-spilling-directory',
  'object-manager-port',
  'node-manager-port',
  'min-worker-port',
  'max-worker-port',
  'worker-port-list',
  'ray-client-server-port',
  'runtime-env-agent-port',
  'metrics-export-port',
  'include-dashboard',
  'dashboard-host',
  'dashboard-port',
  'dashboard-agent-listen-port',
  'dashboard-agent-grpc-port',
  'include-log-monitor',
  'system-config',
];

const optionName = (parameter: string): string => parameter.replace(/^-+/, '').replaceAll('_', '-');

const startsRay = (run: RunSpec): boolean => run.distribution.launcher === 'ray';

/** Images that are known not to contain Ray: https://github.com/aws/deep-learning-containers (PyTorch training, 2026-11-22). */
const WITHOUT_RAY: readonly string[] = ['environment', 'dlc', 'smp', 'huggingface'];

const rayRule = rulesAbout((run) => (startsRay(run) ? run : undefined));

const RAY_RULES: readonly Rule[] = [
  rayRule('ray/contract', 'error', (run) =>
    mustBe(run, 'contract', 'entrypoint', 'with launcher ray: the driver starts Ray'),
  ),
  rayRule('ray/library', 'error', (run) => {
    const { library: given, collectives } = run.distribution;
    return [
      ...when(given !== 'custom', 'distribution.library', {
        must: 'must be custom with launcher ray: the script starts its own workers',
        fix: 'use custom, or launcher torchrun',
      }),
      ...when(collectives === 'smddp', 'distribution.collectives', {
        must: 'must not be smddp with launcher ray: its workers start under torchrun or mpirun only',
        fix: 'use auto',
      }),
    ];
  }),
  rayRule('ray/options', 'error', ({ distribution: { parameters } }) =>
    Object.keys(parameters).flatMap((key) => {
      const [name, path] = [optionName(key), parameterPath(key)];
      if (DRIVER_OPTIONS.includes(name))
        return { path, must: 'must not be an option that the driver sets itself', got: key };
      return when(!RUN_OPTIONS.includes(name), path, {
        level: 'warning' as const,
        must: 'must be an option of ray start',
        got: key,
        fix: `use ${orList(nearest(name, RUN_OPTIONS))}, or remove it`,
      });
    }),
  ),
  rayRule('ray/accelerator', 'error', (run) => {
    const neuron = trainingTypes(run).find(({ type }) => acceleratorKind(type) === 'neuron');
    return when(neuron !== undefined, 'distribution.launcher', {
      must: `must be torchrun or script on ${neuron?.type}`,
      fix: 'use torchrun',
    });
  }),
  rayRule('ray/image', 'warning, may acknowledge', ({ image, code }) =>
    when(WITHOUT_RAY.includes(image.kind) && code.requirements === undefined, 'code.requirements', {
      must: 'must name a file with ray, or the image must have it',
      got: undefined,
      fix: 'add code.requirements, or image.uri of an image with Ray',
    }),
  ),
  rayRule('ray/checkpoints', 'warning, may acknowledge', (run) =>
    when(run.checkpoints.mode === 'none' && hostCount(trainingGroupsOf(run)) > 1, 'checkpoints.mode', {
      must: 'must not be none on several hosts with launcher ray',
      fix: 'set checkpoints.mode: managed, and save below /opt/ml/checkpoints',
    }),
  ),
];

/** One worker per GPU. The script decides how it divides its model among them; a plan assumes full sharding and says so. */
function layout(run: RunSpec): ParallelLayout {
  const plain = dataParallelLayout(run);
  return { ...plain, shard: plain.worldSize, replicate: 1 };
}

/** Custom code on a Ray cluster that the driver starts over all hosts of the job. */
export const ray = strategy({
  name: 'ray',
  libraries: ['custom'],
  matches: (library, launcher) => launcher === 'ray' && !library.startsWith('smp-'),
  layout,
  rules: RAY_RULES,
});
