import { z } from 'zod';

/** A regular expression that is searched for. */
const pattern = z.string().refine(isPattern, 'must be a regular expression').optional();

function isPattern(source: string): boolean {
  try {
    new RegExp(source);
    return true;
  } catch {
    return false;
  }
}

/** When a fault of a running job strikes: on the first of the conditions named; at once when none is. */
const trigger = {
  /** Seconds (of the wall clock) after the job began to train. */
  afterSeconds: z.number().nonnegative().optional(),
  /** A regular expression that a line of any instance's output matches. */
  logMatches: pattern,
  /** The step of a `slipway {"event":"step",...}` line, reached or passed. */
  step: z.number().int().nonnegative().optional(),
};

const common = {
  /** How many times it strikes; null: until it is removed. */
  times: z.number().int().positive().nullable().default(1),
  /** Job it concerns; `*` stands for any characters. Default: any. */
  jobName: z.string().optional(),
  /** Default: any. */
  region: z.string().optional(),
};

const onCall = { ...common, operation: z.string().default('*') };

/** Number of the instance, 1 is algo-1. Absent: every instance. */
const host = z.number().int().positive().optional();

/** A fault on calls to MiniStack's services. `code` absent: the call is only late. */
export const awsFaultSchema = z.strictObject({
  kind: z.literal('aws-error'),
  times: common.times,
  region: common.region,
  /** Signing name: `s3`, `dynamodb`, `kms`, `sns`, ... */
  service: z.string(),
  /** Of X-Amz-Target or Action; S3 and Lambda calls have none, there `method` and `path` tell. */
  operation: pattern,
  method: pattern,
  /** Bucket and key, for S3. */
  path: pattern,
  /** Name of the role that calls. */
  role: pattern,
  code: z.string().optional(),
  message: z.string().optional(),
  status: z.number().int().min(400).max(599).default(500),
  /** Whether the call takes effect before the error is answered. */
  committed: z.boolean().default(false),
  /** How late the answer comes. */
  seconds: z.number().nonnegative().default(0),
});
/** An error that an AWS service shall answer. */
export type AwsFault = z.output<typeof awsFaultSchema>;

/**
 * The faults that can be planned. Calls: `throttling`, `call-error`, `response-lost`, `slow-response`. Jobs: `capacity-error`,
 * `pending`, `state-delay`, `internal-error`, `spot-interruption`, `instance-killed`, `instance-frozen`,
 * `disk-full`. The service itself: `clock-skew`.
 */
export const faultSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('throttling'), ...onCall }),
  z.strictObject({
    kind: z.literal('call-error'),
    ...onCall,
    code: z.string().default('InternalFailure'),
    message: z.string().default('We encountered an internal error. Please try again.'),
    status: z.number().int().min(400).max(599).default(500),
    /** Whether the call takes effect before the error is answered. */
    committed: z.boolean().default(false),
  }),
  z.strictObject({ kind: z.literal('response-lost'), ...onCall }),
  z.strictObject({ kind: z.literal('slow-response'), ...onCall, seconds: z.number().positive() }),
  z.strictObject({
    kind: z.literal('capacity-error'),
    ...common,
    instanceType: z.string().optional(),
    /** Seconds that the job stays Pending before it fails. */
    seconds: z.number().nonnegative().default(0),
  }),
  z.strictObject({
    kind: z.literal('pending'),
    ...common,
    instanceType: z.string().optional(),
    /** Seconds until capacity is there; null: until the fault is removed. Then the job looks for capacity again. */
    seconds: z.number().nonnegative().nullable(),
  }),
  z.strictObject({
    kind: z.literal('state-delay'),
    ...common,
    state: z.enum(['Starting', 'Downloading', 'Uploading']),
    /** How much longer the state lasts; null: until the fault is removed. */
    seconds: z.number().positive().nullable(),
  }),
  z.strictObject({
    kind: z.literal('internal-error'),
    ...common,
    state: z.enum(['Starting', 'Downloading', 'Training', 'Uploading']).default('Training'),
    ...trigger,
  }),
  z.strictObject({ kind: z.literal('spot-interruption'), ...common, ...trigger }),
  z.strictObject({
    kind: z.literal('instance-killed'),
    ...common,
    ...trigger,
    host,
    /** Over command lines; absent: every process of the instance. */
    process: pattern,
    /** platform: the machine is gone (InternalServerError); container: only its processes are (AlgorithmError, 137). */
    as: z.enum(['platform', 'container']).default('platform'),
  }),
  z.strictObject({
    kind: z.literal('instance-frozen'),
    ...common,
    ...trigger,
    host,
    /** Over command lines; absent: every process of the instance. */
    process: pattern,
    /** Seconds until the processes go on; absent: never. */
    seconds: z.number().positive().optional(),
  }),
  z.strictObject({
    kind: z.literal('disk-full'),
    ...common,
    ...trigger,
    host,
    process: pattern,
    /** No file may grow beyond this size. */
    bytes: z.number().int().nonnegative().default(0),
    /** Seconds until there is room again; absent: never. */
    seconds: z.number().positive().optional(),
  }),
  z.strictObject({
    kind: z.literal('clock-skew'),
    ...common,
    /** Until it is removed: a clock that jumps back would make another job of this one. */
    times: common.times.default(null),
    /** How far the service's clock is ahead of everybody else's in what Describe answers; negative: behind. */
    seconds: z.number(),
  }),
]);

/** Any fault that can be planned. */
export const anyFaultSchema = z.discriminatedUnion('kind', [...faultSchema.options, awsFaultSchema]);

/** A fault as a caller writes it: defaults may be left out. */
export type FaultSpec = z.input<typeof anyFaultSchema>;
/** A fault that strikes a job or one of the sandbox's own services. */
export type PlannedFault = z.output<typeof faultSchema>;
/** Kind of a planned fault. */
export type FaultKind = PlannedFault['kind'];
/** The planned fault of one kind. */
export type FaultOf<K extends FaultKind> = Extract<PlannedFault, { kind: K }>;

/** The call or job that a fault may strike. */
export interface FaultTarget {
  region: string;
  jobName?: string;
  operation?: string;
  instanceType?: string;
  state?: string;
}

/** Whether a planned fault concerns the target: what it does not name, it does not ask. */
export function concerns(fault: PlannedFault, target: FaultTarget): boolean {
  if (fault.region !== undefined && fault.region !== target.region) return false;
  if (fault.jobName !== undefined && !globMatches(fault.jobName, target.jobName)) return false;
  if ('operation' in fault && !globMatches(fault.operation, target.operation)) return false;
  if ('instanceType' in fault && fault.instanceType && fault.instanceType !== target.instanceType) return false;
  return !('state' in fault) || target.state === undefined || fault.state === target.state;
}

function globMatches(glob: string, value: string | undefined): boolean {
  if (value === undefined) return false;
  const source = glob.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${source.join('.*')}$`).test(value);
}
