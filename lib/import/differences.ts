import type { ForeignRequest } from './read-request';
import { isObject } from './read-request';
import { reasonOf } from './reasons';
import { readsTheSame } from './toolkit';

/** Something of the imported job that the run file does not say. */
export interface NotCarried {
  /** Place in the request, in the API's own words: `InputDataConfig[train].CompressionType`. */
  field: string;
  value: unknown;
  why: string;
}

/** Lists whose items have a name of their own: their order has no meaning. */
const NAMES = ['ChannelName', 'Key', 'Name', 'InstanceGroupName'];

/** Absent means the same as these: what the service fills in, and DescribeTrainingJob prints. */
const SERVICE_DEFAULTS: readonly [field: RegExp, value: unknown][] = [
  [/^Enable(NetworkIsolation|InterContainerTrafficEncryption|ManagedSpotTraining)$/, false],
  [/\.EnableSageMakerMetricsTimeSeries$/, false],
  [/\.EnableRemoteDebug$/, false],
  [/\.EnableInfraCheck$/, false],
  [/\.(CompressionType|RecordWrapperType)$/, 'None'],
  [/\.KeepAlivePeriodInSeconds$/, 0],
  [/\.TrainingRepositoryAccessMode$/, 'Platform'],
  [/\.S3DataDistributionType$/, 'FullyReplicated'],
  [/^CheckpointConfig\.LocalPath$/, '/opt/ml/checkpoints'],
  [/\.KmsKeyId$/, ''],
];

/**
 * What the request that Slipway makes of the run file does not have, or has differently, with the reason: nothing of the imported request is
 * lost without a word. What Slipway adds of its own is no difference.
 */
export function notCarriedBy(imported: ForeignRequest, remade: ForeignRequest): NotCarried[] {
  const made = leavesOf(effective(remade));
  return [...leavesOf(effective(imported))].flatMap(([field, value]) => {
    if (isSame(field, value, made.get(field))) return [];
    return { field, value, why: reasonOf(field) };
  });
}

function isSame(field: string, value: unknown, other: unknown): boolean {
  if (other === undefined) return SERVICE_DEFAULTS.some(([name, usual]) => name.test(field) && usual === value);
  if (field.startsWith('HyperParameters.') && typeof value === 'string' && typeof other === 'string')
    return readsTheSame(value, other);
  if (field.startsWith('CheckpointConfig.')) return slashless(value) === slashless(other);
  return JSON.stringify(value) === JSON.stringify(other);
}

const slashless = (value: unknown): string => String(value).replace(/\/+$/, '');

/** The mode of each channel on the channel: one that says nothing has the job's. A file system has none. */
function effective(request: ForeignRequest): ForeignRequest {
  const mode = request.AlgorithmSpecification?.TrainingInputMode ?? 'File';
  const { TrainingInputMode: _, ...algorithm } = request.AlgorithmSpecification ?? {};
  return {
    ...request,
    AlgorithmSpecification: algorithm as ForeignRequest['AlgorithmSpecification'],
    InputDataConfig: request.InputDataConfig?.map((channel) =>
      channel.DataSource?.S3DataSource ? { InputMode: mode, ...channel } : { ...channel, InputMode: undefined },
    ),
  };
}

/** Every value of a request by its place. Lists without names are one value. */
export function leavesOf(value: unknown, field = '', found = new Map<string, unknown>()): Map<string, unknown> {
  const at = (key: string) => (field === '' ? key : `${field}.${key}`);
  if (isObject(value)) for (const [key, item] of Object.entries(value)) leavesOf(item, at(key), found);
  else if (Array.isArray(value) && value.length > 0 && value.every((item) => nameOf(item) !== undefined))
    for (const item of value) leavesOf(withoutName(item), `${field}[${nameOf(item)}]`, found);
  else if (value !== undefined) found.set(field, value);
  return found;
}

const nameKey = (item: unknown): string | undefined =>
  isObject(item) ? NAMES.find((key) => typeof item[key] === 'string') : undefined;

function nameOf(item: unknown): string | undefined {
  const key = nameKey(item);
  return key === undefined ? undefined : String((item as Record<string, unknown>)[key]);
}

function withoutName(item: unknown): unknown {
  const key = nameKey(item);
  return Object.fromEntries(Object.entries(item as object).filter(([name]) => name !== key));
}
