import { z } from 'zod';
import { field, flag, option, section } from '../formats/field';
import { email, MAX, unique } from './formats';

const requirement = section('Instances that the quotas must allow at once.', {
  instanceType: field(z.string(), 'SageMaker instance type.', { examples: ['ml.p5.48xlarge'] }),
  count: field(z.int().min(1).max(MAX), 'Number of instances.', { examples: [64] }),
  usage: option(
    z.enum(['training', 'spot', 'warm-pool', 'processing']),
    'Usage of the instances; each usage has its own quota.',
    { default: 'training' },
  ),
});

export const quotas = z.strictObject({
  enforce: option(
    z.enum(['fail', 'warn', 'off']),
    'Reaction of a deployment to an insufficient quota: fail before any resource is created (fail), warn (warn), or no check (off).',
    { default: 'fail' },
  ),
  requestIncrease: flag('Whether a deployment requests the required increases, each once.'),
  require: option(
    z.array(requirement),
    'Instances that the quotas must allow, all at the same time. They are not added to those of `runs`, each of which the quotas must allow alone.',
    {
      default: [],
      examples: [[{ instanceType: 'ml.p4d.24xlarge', count: 64, usage: 'training' }]],
    },
  ),
});

export const guardrails = z.strictObject({
  allowedInstanceTypes: option(
    z.array(z.string()).min(1),
    'Instance types that runs may use, with the wildcards `*` and `?`. Default: all.',
    { examples: [['ml.p5*.48xlarge', 'ml.g5.*']] },
  ),
  maxInstancesPerRun: option(z.int().min(1), 'Maximum number of instances of one run. Default: no limit.', {
    examples: [128],
  }),
  maxConcurrentInstances: option(
    z.int().min(1),
    'Maximum number of instances of all concurrent runs of the environment in one region; other runs wait in the queue. Default: no limit.',
    { examples: [256] },
  ),
  maxCostPerRunUsd: option(z.number().positive(), 'Maximum planned cost of one run, in USD. Default: no limit.', {
    examples: [250_000],
  }),
  maxRuntimeSeconds: option(z.int().min(1), 'Maximum run time of one attempt, in seconds. Default: no limit.', {
    examples: [432_000],
  }),
  allowedImages: option(
    z.array(z.string()).min(1),
    'Images that runs may use: environment, dlc, smp, huggingface, and prefixes of image URIs, which end where a part of the URI ends: `.../team` allows `.../team:1` and `.../team/app`, not `.../team-2`. Default: all.',
    { examples: [['environment', 'dlc']] },
  ),
  requireNetworkIsolation: flag('Whether every run must set `network.isolation`.'),
  allowRemoteDebug: flag(
    'Whether runs may enable remote debug, which allows a shell with the credentials of the execution role in the containers.',
  ),
});

export const budget = z.strictObject({
  monthlyUsd: field(z.number().positive().max(1e12), 'Budget of a calendar month, in USD.', { examples: [500_000] }),
  // A budget accepts ten notifications with ten addresses each, and no duplicate notifications:
  // https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_budgets_CreateBudget.html
  thresholdsPercent: option(
    unique(z.array(z.number().positive().max(1e9)).min(1).max(10)),
    'Thresholds for email notifications, in percent of the budget.',
    { default: [50, 80, 100], examples: [[80, 100]] },
  ),
  emails: option(unique(z.array(email.max(50)).max(10)), 'Email addresses that receive notifications.', {
    default: [],
    examples: [['ml-platform@example.com']],
  }),
});

const minutes = z.number().nonnegative().max(10_080).optional();

export const queue = z.strictObject({
  backend: option(
    z.enum(['slipway', 'batch']),
    'Queue backend, which decides which run starts next. Only slipway is supported, see docs/decisions/0008-aws-batch.md.',
    { default: 'slipway' },
  ),
  preemption: option(
    z.strictObject({
      afterMinutes: field(minutes, 'Time that a run must wait before it preempts preemptible runs, in minutes.', {
        default: 15,
        examples: [30],
      }),
      leastTrainingMinutes: field(
        minutes,
        'Time that a job must have trained before it can be preempted, in minutes.',
        { default: 60, examples: [120] },
      ),
      protectedMinutes: field(minutes, 'Time for which a preempted run cannot be preempted again, in minutes.', {
        default: 240,
        examples: [480],
      }),
    }),
    'Times of preemption, see docs/queue.md.',
    { examples: [{ afterMinutes: 15, leastTrainingMinutes: 60, protectedMinutes: 240 }] },
  ),
});

/** Limits that a platform team sets for every run. */
export type Guardrails = z.output<typeof guardrails>;

/** Times of preemption, in minutes: `queue.preemption` of the environment file. */
export type PreemptionTimes = Required<NonNullable<z.output<typeof queue>['preemption']>>;

/** Default times of preemption, in minutes. */
export const PREEMPTION_TIMES: PreemptionTimes = { afterMinutes: 15, leastTrainingMinutes: 60, protectedMinutes: 240 };
