// What rules over a run file say, word for word, and the nearest file of which they say nothing.
import { expect, test } from 'vitest';
import type { RuleContext } from '../../../lib/core/config/rule';
import { BASE, DESCRIPTOR, issuesOf, PLANNABLE } from '../../support/runs';

const PLAN = 'arn:aws:sagemaker:us-west-2:111122223333:training-plan/p';
const MLFLOW = 'arn:aws:sagemaker:us-west-2:111122223333:mlflow-tracking-server/shared';
const compute = { ...BASE.compute };
const shaped = (architecture: object) => ({
  ...BASE,
  model: {
    architecture: {
      ...{ layers: 4, hiddenSize: 64, attentionHeads: 4, ffnHiddenSize: 128, vocabularySize: 256 },
      ...architecture,
    },
  },
});
const mlflow = (servers: string[] | undefined): RuleContext => ({ descriptor: { ...DESCRIPTOR, mlflow: servers } });
const logging = { ...BASE, observability: { mlflow: { arn: MLFLOW } } };

type Row = [rule: string, file: object, said: string[], context?: RuleContext];
const ROWS: Row[] = [
  ['compute/training-plan', { ...BASE, compute: { ...compute, capacity: 'training-plan', trainingPlanArn: PLAN } }, []],
  ['compute/training-plan', { ...BASE, compute: { ...compute, capacity: 'spot' } }, []],
  [
    'compute/training-plan',
    { ...BASE, compute: { ...compute, capacity: 'training-plan' } },
    ['error compute.trainingPlanArn: must be given with capacity training-plan; add the ARN of the plan'],
  ],
  [
    'compute/training-plan',
    {
      ...BASE,
      compute: {
        ...compute,
        capacity: 'training-plan',
        alternatives: [{ instanceType: 'ml.p4d.24xlarge', trainingPlanArn: PLAN }],
      },
    },
    [],
  ],
  [
    'compute/training-plan',
    { ...BASE, compute: { ...compute, capacity: 'spot', trainingPlanArn: PLAN } },
    [
      `error compute.trainingPlanArn: must be used with capacity training-plan, not spot, got ${PLAN}; set capacity: training-plan, or remove it`,
    ],
  ],
  [
    'compute/training-plan',
    {
      ...BASE,
      compute: { instanceType: 'ml.g5.48xlarge', instanceCount: 2, capacity: 'training-plan', trainingPlanArn: PLAN },
    },
    [
      'error compute.instanceType: must be a type for which training plans are available, got ml.g5.48xlarge; use ml.p4d, ml.p5, ml.p5e, ml.p5en, ml.p6 or ml.trn types, or capacity on-demand',
    ],
  ],
  ['compute/training-plan', { ...BASE, compute: { instanceType: 'ml.g5.48xlarge', instanceCount: 2 } }, []],
  ...[1024, 16_385].map(
    (volumeSizeGiB): Row => [
      'compute/volume-beyond-quota',
      { ...BASE, compute: { instanceType: 'ml.m5.xlarge', instanceCount: 1, volumeSizeGiB } },
      [],
    ],
  ),
  ['compute/volume-beyond-quota', BASE, []],
  ...[1025, 16_384].map(
    (volumeSizeGiB): Row => [
      'compute/volume-beyond-quota',
      { ...BASE, compute: { instanceType: 'ml.m5.xlarge', instanceCount: 1, volumeSizeGiB } },
      [
        `warning compute.volumeSizeGiB: must be within the quota on EBS volumes (1024 GiB by default), got ${volumeSizeGiB}; check it with slipway quota`,
      ],
    ],
  ),
  ['data/foreign-mlflow', logging, []],
  ['data/foreign-mlflow', logging, [], mlflow([MLFLOW])],
  [
    'data/foreign-mlflow',
    logging,
    [
      `error observability.mlflow.arn: must be absent: team nlp may log to no MLflow server, got ${MLFLOW}; ask the platform team to add it to teams.nlp.mlflow`,
    ],
    mlflow([]),
  ],
  [
    'data/foreign-mlflow',
    logging,
    [
      `error observability.mlflow.arn: must be one that team nlp may log to (other), got ${MLFLOW}; ask the platform team to add it to teams.nlp.mlflow`,
    ],
    mlflow(['other']),
  ],
  ['model/shape', shaped({}), []],
  ['model/shape', shaped({ experts: 8, expertsPerToken: 2 }), []],
  ['model/shape', shaped({ experts: 8, expertsPerToken: 8 }), []],
  [
    'model/shape',
    shaped({ experts: 8 }),
    ['error model.architecture.experts: must be set together: experts and expertsPerToken, got 8; add the other'],
  ],
  [
    'model/shape',
    shaped({ expertsPerToken: 2 }),
    [
      'error model.architecture.expertsPerToken: must be set together: experts and expertsPerToken, got 2; add the other',
    ],
  ],
  [
    'model/shape',
    shaped({ experts: 8, expertsPerToken: 9 }),
    ['error model.architecture.expertsPerToken: must be at most the 8 experts, got 9; reduce it'],
  ],
  ['training/preferences', { ...PLANNABLE, training: { ...PLANNABLE.training, objective: 'sft' } }, []],
  ['training/preferences', { ...BASE, training: { objective: 'dpo' } }, []],
  ['model/builtin-parts', PLANNABLE, []],
  ['model/builtin-parts', shaped({ hiddenSize: 64 }), []],
];

test.each(ROWS)('%s %j', (rule, file, said, context) => {
  expect(issuesOf(file, rule, context).map(({ level, message }) => `${level} ${message}`)).toEqual(said);
});

test.each([
  ['fsdp', 'fp8', []],
  ['fsdp', 'fp32', []],
  ['ddp', 'bf16', []],
  ['ddp', 'fp8', ['training.precision: must be bf16 or fp32 for the built-in trainer with ddp, got fp8']],
])('precisions of the built-in trainer with %s: %s', (library, precision, said) => {
  const file = { ...PLANNABLE, training: { ...PLANNABLE.training, precision }, distribution: { library } };
  const found = issuesOf(file, '').filter(({ message }) => message.includes('for the built-in trainer with'));
  expect(found.map(({ message }) => message.replace(/;.*/, ''))).toEqual(said);
});
