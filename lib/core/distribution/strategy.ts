import { orList } from '../config/issue';
import { instanceGroupsOf, trainingGroupsOf, worldSize } from '../config/resolve-run';
import type { Finding, Rule } from '../config/rule';
import type { Collectives, Launcher, RunSpec } from '../config/run-spec';

/** How the ranks of a run are divided. The product of all degrees is `worldSize`. */
export interface ParallelLayout {
  worldSize: number;
  tensor: number;
  pipeline: number;
  context: number;
  expert: number;
  /** Number of ranks over which parameters are sharded (FSDP, ZeRO, hybrid shard degree). */
  shard: number;
  /** Number of copies of a shard group. */
  replicate: number;
  /** Number of ranks that read different sequences. */
  dataParallel: number;
}

/** One way to distribute training. A new strategy needs a file, an entry in index.ts, a run file and tests. */
export interface Strategy {
  name: string;
  /** Values of `distribution.library` that it handles. */
  libraries: readonly string[];
  matches(library: string, launcher: Launcher, collectives: Collectives): boolean;
  /** undefined when the degrees do not fit the world size; a rule reports the reason. */
  layout(run: RunSpec): ParallelLayout | undefined;
  /** Toolkit contract: the distribution's hyperparameters before JSON encoding, as the SageMaker Python SDK v2 sends them. */
  hyperparameters(run: RunSpec): Record<string, unknown>;
  /** Entrypoint contract: environment variables for the library, in addition to those of the driver. */
  environment(run: RunSpec): Record<string, string>;
  /** Entrypoint contract: arguments that precede the user's. */
  arguments(run: RunSpec): string[];
  rules: readonly Rule[];
}

const none = () => ({});

/** A strategy of its libraries under torchrun, in which everything that is not given is empty. */
export function strategy(given: Pick<Strategy, 'name' | 'libraries'> & Partial<Strategy>): Strategy {
  return {
    matches: (library, launcher) => given.libraries.includes(library) && launcher === 'torchrun',
    layout: dataParallelLayout,
    hyperparameters: none,
    environment: none,
    arguments: () => [],
    rules: [],
    ...given,
  };
}

/** Every rank is a separate replica. */
export function dataParallelLayout(run: RunSpec): ParallelLayout {
  const world = worldSize(run);
  const undivided = { tensor: 1, pipeline: 1, context: 1, expert: 1, shard: 1 };
  return { worldSize: world, ...undivided, replicate: world, dataParallel: world };
}

/** The value of a parameter that is a whole number, or `fallback` when it is absent or not a number. */
export function degree(run: RunSpec, key: string, fallback: number): number {
  const value = run.distribution.parameters[key];
  return typeof value === 'number' && Number.isInteger(value) ? value : fallback;
}

/** `sagemaker_instance_type` of the SDK: the instance type, or null for a heterogeneous cluster. */
export function sdkInstanceType(run: RunSpec): string | null {
  return run.compute.instanceGroups.length > 0 ? null : run.compute.instanceType;
}

/** `sagemaker_distribution_instance_groups`: the groups that the run names, or its only group. */
export function groupHyperparameters(run: RunSpec): Record<string, unknown> {
  const named = run.distribution.instanceGroups;
  const all = run.compute.instanceGroups.map((g) => g.name);
  const names = named.length === 0 && all.length === 1 ? all : named;
  return names.length > 0 ? { sagemaker_distribution_instance_groups: names } : {};
}

/** Instance types of the hosts that train, without duplicates. */
export function trainingInstanceTypes(run: RunSpec): string[] {
  return trainingTypes(run).map(({ type }) => type);
}

/** The same with the path at which the file first names each type: the plain option, or a group that takes part. */
export function trainingTypes(run: RunSpec): { path: string; type: string }[] {
  const groups = instanceGroupsOf(run.compute);
  const named = trainingGroupsOf(run).map(({ name, instanceType: type }) => ({
    path:
      run.compute.instanceGroups.length === 0
        ? 'compute.instanceType'
        : `compute.instanceGroups[${groups.findIndex((g) => g.name === name)}].instanceType`,
    type,
  }));
  return named.filter(({ type }, i) => named.findIndex((other) => other.type === type) === i);
}

/** All paths of the file that name an instance type. */
export function namedTypes({ compute }: Pick<RunSpec, 'compute'>): { path: string; type: string }[] {
  return [
    ...(compute.instanceType === '' ? [] : [{ path: 'compute.instanceType', type: compute.instanceType }]),
    ...compute.instanceGroups.map((g, i) => ({
      path: `compute.instanceGroups[${i}].instanceType`,
      type: g.instanceType,
    })),
    ...compute.alternatives.map((a, i) => ({ path: `compute.alternatives[${i}].instanceType`, type: a.instanceType })),
  ];
}

/** Findings for types of hosts that train and on which a library does not run. */
export const otherTypes = (run: RunSpec, allowed: readonly string[], library: string, fix: string): Finding[] =>
  trainingTypes(run)
    .filter(({ type }) => type !== '' && !allowed.includes(type))
    .map(({ path }) => ({ path, must: `must be one of ${orList(allowed)} for ${library}`, fix }));

/** `--key value` for each parameter; true becomes `--key`, false is omitted, lists repeat the key. */
export function flagArguments(parameters: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(parameters).flatMap(([key, value]) => {
    const flag = key.startsWith('-') ? key : `--${key}`;
    if (value === true) return [flag];
    if (value === false) return [];
    if (Array.isArray(value)) return value.flatMap((item) => [flag, argumentText(item)]);
    return [flag, argumentText(value)];
  });
}

function argumentText(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
