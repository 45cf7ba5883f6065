import { z } from 'zod';
import { matchesGlob } from '../../core/config/formats/patterns';

/** A regular expression, searched anywhere in the text. */
const pattern = z.string().refine(isPattern, 'must be a regular expression').optional();

function isPattern(source: string): boolean {
  try {
    new RegExp(source);
    return true;
  } catch {
    return false;
  }
}

/** When a fault of a running job takes effect: at the first of the given conditions; immediately when there is none. */
const trigger = {
  /** Wall-clock seconds after the job began to train. */
  afterSeconds: z.number().nonnegative().optional(),
  /** A regular expression that matches a line of any instance's output. */
  logMatches: pattern,
  /** The step of a `slipway {"event":"step",...}` line; that step or a later one. */
  step: z.number().int().nonnegative().optional(),
};

const common = {
  /** How often it takes effect; null: until it is removed. */
  times: z.number().int().positive().nullable().default(1),
  /** Name of the job; `*` matches any characters. Default: any. */
  jobName: z.string().optional(),
  /** Default: any. */
  region: z.string().optional(),
};

const onCall = { ...common, operation: z.string().default('*') };

const onInstances = {
  ...common,
  ...trigger,
  /** Number of the instance; 1 is algo-1. Absent: every instance. */
  host: z.number().int().positive().optional(),
  /** Matched against command lines; absent: every process of the instance. */
  process: pattern,
};

/** The error of a call. */
const error = {
  status: z.number().int().min(400).max(599).default(500),
  /** Whether the call takes effect before the error is returned. */
  committed: z.boolean().default(false),
};

/** A fault on calls to MiniStack's services. Without `code` the call is only delayed. */
const awsFaultSchema = z.strictObject({
  kind: z.literal('aws-error'),
  times: common.times,
  region: common.region,
  /** Signing name: `s3`, `dynamodb`, `kms`, `sns`, ... */
  service: z.string(),
  /** From X-Amz-Target or Action; calls of S3 and Lambda have none and are matched by `method` and `path`. */
  operation: pattern,
  method: pattern,
  /** Bucket and key, for S3. */
  path: pattern,
  role: pattern,
  code: z.string().optional(),
  message: z.string().optional(),
  ...error,
  /** Delay of the answer. */
  seconds: z.number().nonnegative().default(0),
});
/** An error that an AWS service should return. */
export type AwsFault = z.output<typeof awsFaultSchema>;

/**
 * The faults that can be planned. Calls: `throttling`, `call-error`, `response-lost`. Jobs: `capacity-error`,
 * `pending`, `state-delay`, `internal-error`, `spot-interruption`, `instance-killed`, `instance-frozen`. The service itself: `clock-skew`.
 */
export const faultSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('throttling'), ...onCall }),
  z.strictObject({
    kind: z.literal('call-error'),
    ...onCall,
    code: z.string().default('InternalFailure'),
    message: z.string().default('We encountered an internal error. Please try again.'),
    ...error,
  }),
  z.strictObject({ kind: z.literal('response-lost'), ...onCall }),
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
    /** Seconds until capacity is available; null: until the fault is removed. Then the job checks for capacity again. */
    seconds: z.number().nonnegative().nullable(),
  }),
  z.strictObject({
    kind: z.literal('state-delay'),
    ...common,
    state: z.enum(['Starting', 'Downloading', 'Uploading']),
    /** Additional duration of the state; null: until the fault is removed. */
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
    ...onInstances,
    /** platform: the machine is lost (InternalServerError); container: only its processes are (AlgorithmError, 137). */
    as: z.enum(['platform', 'container']).default('platform'),
  }),
  z.strictObject({
    kind: z.literal('instance-frozen'),
    ...onInstances,
    /** Seconds until the processes continue; absent: never. */
    seconds: z.number().positive().optional(),
  }),
  z.strictObject({
    kind: z.literal('clock-skew'),
    ...common,
    /** Until it is removed: a clock that jumped back would make a job look like another one. */
    times: common.times.default(null),
    /** How far the service's clock in Describe answers is ahead of all other clocks; negative: behind. */
    seconds: z.number(),
  }),
]);

/** Any fault that can be planned. */
export const anyFaultSchema = z.discriminatedUnion('kind', [...faultSchema.options, awsFaultSchema]);

/** A fault as given by a caller: fields with defaults may be left out. */
export type FaultSpec = z.input<typeof anyFaultSchema>;
/** A fault that affects a job or one of the sandbox's own services. */
export type PlannedFault = z.output<typeof faultSchema>;
export type FaultKind = PlannedFault['kind'];
export type FaultOf<K extends FaultKind> = Extract<PlannedFault, { kind: K }>;

export interface FaultTarget {
  region: string;
  jobName?: string;
  operation?: string;
  instanceType?: string;
  state?: string;
}

/** Whether a planned fault applies to the target; fields that it does not set match anything. */
export function concerns(fault: PlannedFault, target: FaultTarget): boolean {
  if (fault.region !== undefined && fault.region !== target.region) return false;
  if (fault.jobName !== undefined && !globMatches(fault.jobName, target.jobName)) return false;
  if ('operation' in fault && !globMatches(fault.operation, target.operation)) return false;
  if ('instanceType' in fault && fault.instanceType && fault.instanceType !== target.instanceType) return false;
  return !('state' in fault) || target.state === undefined || fault.state === target.state;
}

const globMatches = (glob: string, value: string | undefined): boolean =>
  value !== undefined && matchesGlob(glob, value);
