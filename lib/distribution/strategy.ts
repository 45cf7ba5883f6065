import { instanceGroupsOf, trainingGroupsOf, worldSize } from '../spec/resolve-run';
import type { Rule } from '../spec/rule';
import type { Collectives, ImageKind, Launcher, RunSpec } from '../spec/run-spec';

/** How the ranks of a run are divided. The product of all factors is `worldSize`. */
export interface ParallelLayout {
  worldSize: number;
  tensor: number;
  pipeline: number;
  context: number;
  expert: number;
  /** Ranks over which parameters are sharded (FSDP, ZeRO, hybrid shard degree). */
  shard: number;
  /** Copies of one shard group. */
  replicate: number;
  /** Ranks that see distinct sequences. */
  dataParallel: number;
}

/** One way to distribute training. Adding one: its file, a line in index.ts, its run file and its tests. */
export interface Strategy {
  name: string;
  /** One line for the generated docs. */
  summary: string;
  /** Values of `distribution.library` it answers to. */
  libraries: readonly string[];
  matches(library: string, launcher: Launcher, collectives: Collectives, image: ImageKind): boolean;
  /** undefined when the degrees do not fit the world size; a rule says why. */
  layout(run: RunSpec): ParallelLayout | undefined;
  /** Toolkit contract: the distribution's hyperparameters before JSON encoding, as the SageMaker Python SDK v2 sends them. */
  hyperparameters(run: RunSpec): Record<string, unknown>;
  /** Entrypoint contract: variables the library reads, beside what the driver sets. */
  environment(run: RunSpec): Record<string, string>;
  /** Entrypoint contract: arguments that go before the user's. */
  arguments(run: RunSpec): string[];
  rules: readonly Rule[];
}

const none = () => ({});

/** A strategy with everything empty that it does not name. */
export function strategy(
  given: Pick<Strategy, 'name' | 'summary' | 'libraries' | 'matches'> & Partial<Strategy>,
): Strategy {
  return {
    layout: dataParallelLayout,
    hyperparameters: none,
    environment: none,
    arguments: () => [],
    rules: [],
    ...given,
  };
}

/** Every rank is a replica of its own. */
export function dataParallelLayout(run: RunSpec): ParallelLayout {
  const world = worldSize(run);
  return {
    worldSize: world,
    tensor: 1,
    pipeline: 1,
    context: 1,
    expert: 1,
    shard: 1,
    replicate: world,
    dataParallel: world,
  };
}

/** A whole number among the parameters, or `fallback` when absent or no number. */
export function degree(run: RunSpec, key: string, fallback: number): number {
  const value = run.distribution.parameters[key];
  return typeof value === 'number' && Number.isInteger(value) ? value : fallback;
}

/** `sagemaker_instance_type` of the SDK: the instance type, or null for a heterogeneous cluster. */
export function sdkInstanceType(run: RunSpec): string | null {
  return run.compute.instanceGroups.length > 0 ? null : run.compute.instanceType;
}

/** `sagemaker_distribution_instance_groups`: the groups that the run names, or the only one that there is. */
export function groupHyperparameters(run: RunSpec): Record<string, unknown> {
  const named = run.distribution.instanceGroups;
  const all = run.compute.instanceGroups.map((g) => g.name);
  const names = named.length === 0 && all.length === 1 ? all : named;
  return names.length > 0 ? { sagemaker_distribution_instance_groups: names } : {};
}

/** Types of the hosts that train, each once. */
export function trainingInstanceTypes(run: RunSpec): string[] {
  return trainingTypes(run).map(({ type }) => type);
}

/** The same with the place where the file first names each: the plain form, or a group that takes part. */
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

/** `--key value` for each parameter; true becomes `--key`, false is left out, lists repeat the key. */
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
