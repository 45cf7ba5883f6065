// What docs/security.md says that nobody may do, evaluated against the policies of a synthesised environment with every option.
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { SYNTH_MS } from '../cdk/support/app';
import { placesIn } from '../laws/calls/places';
import type { Places } from '../laws/calls/use';
import { policiesOf } from './laws/authorization';
import { evaluate, type Request, type Statement } from './support/policy';
import { specs, synthesise } from './support/templates';
import type { Resources } from './support/values';

vi.setConfig({ testTimeout: SYNTH_MS });

let resources: Resources;
let places: Places;
beforeAll(() => {
  const { everything } = specs();
  if (!everything) throw new Error('specs() must have the environment everything');
  resources = synthesise(everything);
  places = placesIn(resources);
}, SYNTH_MS);

function statementsOf(policy: string): Statement[] {
  const found = policiesOf(resources).filter(
    ([id]) => id.startsWith(policy) && resources[id]?.Type === 'AWS::IAM::Policy',
  );
  expect(found, policy).toHaveLength(1);
  return found[0]?.[1] ?? [];
}

type Call = [action: string, resource: string, context?: Request['context']];

/** The calls that a policy allows although it must not. */
const allowed = (policy: string, calls: readonly Call[]): string[] =>
  calls
    .filter(([action, resource, context]) => evaluate(statementsOf(policy), { action, resource, context }) === 'Allow')
    .map(([action, resource]) => `${action} on ${resource}`);

const JOB = 'training-job/research-pretrain-1-a001';

/** What changes something, spends something, or reads data. */
function touching({ arn, bucket, of, dataKey }: Places): Call[] {
  const table = arn('dynamodb', 'table/slipway-research-runs');
  const object = (name: string) => `${bucket('data')}/${name}`;
  return [
    ['s3:PutObject', object('tokens/0.bin')],
    ['s3:DeleteObject', object('tokens/0.bin')],
    ['s3:DeleteObjectVersion', object('tokens/0.bin')],
    ['s3:PutObject', `${bucket('checkpoints')}/runs/nlp/r/step-1/x`],
    ['s3:DeleteObject', `${bucket('checkpoints')}/runs/nlp/r/step-1/x`],
    ['s3:PutObject', `${bucket('artifacts')}/drivers/0/launch.sh`],
    ['s3:PutObject', `${bucket('artifacts')}/runs/nlp/r/job/1/job.json`],
    ['s3:PutBucketPolicy', bucket('data')],
    ['s3:DeleteBucket', bucket('data')],
    ['sagemaker:CreateTrainingJob', arn('sagemaker', JOB)],
    ['sagemaker:StopTrainingJob', arn('sagemaker', JOB)],
    ['sagemaker:UpdateTrainingJob', arn('sagemaker', JOB)],
    ['sagemaker:DeleteTrainingJob', arn('sagemaker', JOB)],
    ['sagemaker:CreateProcessingJob', arn('sagemaker', 'processing-job/research-x')],
    ['sagemaker:AddTags', arn('sagemaker', JOB)],
    ['sagemaker:CreateTrainingPlan', arn('sagemaker', 'training-plan/new')],
    ['iam:PassRole', 'arn:aws:iam::111122223333:role/slipway-research-us-west-2-nlp-execution'],
    ['iam:PutRolePolicy', 'arn:aws:iam::111122223333:role/slipway-research-us-west-2-nlp-execution'],
    ['sts:AssumeRole', 'arn:aws:iam::111122223333:role/slipway-research-us-west-2-nlp-execution'],
    ['lambda:InvokeFunction', arn('lambda', 'function:slipway-research-reconcile')],
    ['lambda:UpdateFunctionCode', arn('lambda', 'function:slipway-research-control')],
    ['lambda:GetFunction', arn('lambda', 'function:slipway-research-control')],
    ['dynamodb:PutItem', table],
    ['dynamodb:UpdateItem', table],
    ['dynamodb:DeleteItem', table],
    ['dynamodb:DeleteTable', table],
    ['kms:ScheduleKeyDeletion', dataKey],
    ['kms:PutKeyPolicy', dataKey],
    ['kms:CreateGrant', dataKey],
    ['sqs:SendMessage', of('LauncherRunQueue')],
    ['sqs:PurgeQueue', of('LauncherRunQueue')],
    ['ssm:PutParameter', arn('ssm', 'parameter/slipway/environments/research/nlp')],
    ['ssm:StartSession', '*'],
    ['secretsmanager:GetSecretValue', arn('secretsmanager', 'secret:slipway/nlp/hub-AbCdEf')],
    ['servicequotas:RequestServiceQuotaIncrease', '*'],
    ['cloudformation:UpdateStack', arn('cloudformation', 'stack/Slipway-research-us-west-2/1')],
    ['cloudformation:DeleteStack', arn('cloudformation', 'stack/Slipway-research-us-west-2/1')],
    ['ecr:PutImage', arn('ecr', 'repository/slipway-research')],
    ['logs:DeleteLogGroup', arn('logs', 'log-group:/aws/sagemaker/TrainingJobs:*')],
  ];
}

describe('an auditor can see and cannot touch', () => {
  test('every call that changes or spends something is refused', () => {
    const calls = touching(places);
    expect(calls.length).toBeGreaterThanOrEqual(30);
    expect(allowed('Accessauditor', calls)).toEqual([]);
  });

  test('no object is read, and no run is started by an alias of a team', () => {
    const { bucket, of } = places;
    const data: Call[] = (['data', 'checkpoints', 'artifacts'] as const).map((name) => [
      's3:GetObject',
      `${bucket(name)}/runs/nlp/x`,
    ]);
    const aliases: Call[] = ['nlp', 'speech'].map((team) => ['lambda:InvokeFunction', of(`LauncherAlias${team}`)]);
    expect(allowed('Accessauditor', [...data, ...aliases])).toEqual([]);
  });

  test('jobs, logs and the history of runs are seen', () => {
    const { arn, of } = places;
    const calls: Call[] = [
      ['sagemaker:DescribeTrainingJob', arn('sagemaker', JOB)],
      ['logs:FilterLogEvents', arn('logs', 'log-group:/aws/sagemaker/TrainingJobs:*')],
      ['dynamodb:Query', arn('dynamodb', 'table/slipway-research-runs')],
      ['lambda:InvokeFunction', of('AuditAliasnlp')],
      ['lambda:InvokeFunction', of('AuditAliasspeech')],
      ['cloudformation:DetectStackDrift', arn('cloudformation', 'stack/Slipway-research-us-west-2/1')],
      ['ce:GetCostAndUsage', '*'],
    ];
    expect(allowed('Accessauditor', calls)).toHaveLength(calls.length);
  });

  test('the function that answers an auditor can change nothing either, and reads no data', () => {
    const { bucket } = places;
    const data: Call[] = (['data', 'checkpoints', 'artifacts'] as const).map((name) => [
      's3:GetObject',
      `${bucket(name)}/runs/nlp/r/x`,
    ]);
    expect(allowed('AuditFunction', [...touching(places), ...data])).toEqual([]);
  });
});

test('a pipeline of ci changes and reads nothing either', () => {
  const { arn, bucket, of } = places;
  const more: Call[] = [
    ['s3:GetObject', `${bucket('data')}/tokens/0.bin`],
    ['dynamodb:Query', arn('dynamodb', 'table/slipway-research-runs')],
    ['logs:FilterLogEvents', arn('logs', 'log-group:/aws/sagemaker/TrainingJobs:*')],
    ['lambda:InvokeFunction', of('LauncherAliasnlp')],
  ];
  expect(allowed('Accessci', [...touching(places), ...more])).toEqual([]);
});

/** What belongs to team speech, or to nobody's team. */
function foreign({ arn, bucket, of }: Places): Call[] {
  const tagged = { 'aws:ResourceTag/slipway:team': 'speech' };
  return [
    ['lambda:InvokeFunction', of('LauncherAliasspeech')],
    ['lambda:InvokeFunction', arn('lambda', 'function:slipway-research-control')],
    ['lambda:InvokeFunction', arn('lambda', 'function:slipway-research-reconcile')],
    ['sagemaker:DescribeTrainingJob', arn('sagemaker', JOB), tagged],
    ['s3:GetObject', `${bucket('data')}/teams/speech/secret.bin`],
    ['s3:PutObject', `${bucket('data')}/teams/speech/secret.bin`],
    ['s3:PutObject', `${bucket('data')}/shared/0.bin`],
    ['s3:GetObject', `${bucket('checkpoints')}/runs/speech/r/step-1/x`],
    ['s3:PutObject', `${bucket('checkpoints')}/runs/speech/r/step-1/x`],
    ['s3:GetObject', `${bucket('artifacts')}/runs/speech/r/output/x`],
    ['s3:PutObject', `${bucket('artifacts')}/runs/speech/r/code/0.tar.gz`],
    ['s3:GetObject', `${bucket('artifacts')}/teams/speech/page/index.html`],
    ['s3:PutObject', `${bucket('artifacts')}/teams/speech/page/index.html`],
    ['s3:PutObject', `${bucket('artifacts')}/drivers/0/launch.sh`],
    ['s3:PutObject', `${bucket('artifacts')}/runs/nlp/r/job/1/job.json`],
    ['s3:ListBucket', bucket('checkpoints'), { 's3:prefix': 'runs/speech/' }],
    ['dynamodb:GetItem', arn('dynamodb', 'table/slipway-research-runs')],
    ['iam:PassRole', 'arn:aws:iam::111122223333:role/slipway-research-us-west-2-nlp-execution'],
    ['sagemaker:CreateTrainingJob', arn('sagemaker', JOB)],
    ['sagemaker:StopTrainingJob', arn('sagemaker', JOB)],
    ['ssm:StartSession', '*'],
    ['ssm:GetParameter', arn('ssm', 'parameter/slipway/environments/research/speech')],
  ];
}

describe('a team is a boundary', () => {
  const LOGS: Call[] = ['FilterLogEvents', 'GetLogEvents'].map((name) => [
    `logs:${name}`,
    'arn:aws:logs:us-west-2:111122223333:log-group:/aws/sagemaker/TrainingJobs:log-stream:research-other-1-a001/algo-1-1',
  ]);

  test('its researchers reach nothing of another team, and nothing that launches or writes logs and job files', () => {
    expect(allowed('Accessnlpresearcher', [...foreign(places), ...LOGS])).toEqual([]);
  });

  test.each(['Rolesnlpexecution', 'Rolesnlpprocessing'])('jobs under %s reach nothing of another team', (role) => {
    expect(allowed(role, foreign(places))).toEqual([]);
  });

  test('jobs cannot assume or pass roles, start jobs, or manage the key', () => {
    const { arn, dataKey } = places;
    const calls: Call[] = [
      ['sts:AssumeRole', 'arn:aws:iam::111122223333:role/slipway-research-us-west-2-speech-execution'],
      ['sagemaker:CreateTrainingJob', arn('sagemaker', JOB)],
      ['kms:CreateGrant', dataKey],
      ['kms:Decrypt', dataKey, { 'kms:ViaService': 'dynamodb.us-west-2.amazonaws.com' }],
      ['kms:PutKeyPolicy', dataKey],
      ['secretsmanager:GetSecretValue', arn('secretsmanager', 'secret:slipway/speech/hub-AbCdEf')],
      ['secretsmanager:GetSecretValue', arn('secretsmanager', 'secret:other-AbCdEf')],
    ];
    for (const role of ['Rolesnlpexecution', 'Rolesnlpprocessing']) expect(allowed(role, calls)).toEqual([]);
  });

  test('the page of a team is written by reconcile alone, and read by its people and the platform team', () => {
    const at = `${places.bucket('artifacts')}/teams/nlp/page/index.html`;
    const may = (action: string) => (policy: string) => allowed(policy, [[action, at]]).length > 0;
    const everyone = [
      ...['Accessnlpresearcher', 'Accessplatformadmin', 'Accessauditor', 'Accessci', 'Rolesnlpexecution'],
      ...['Rolesnlpprocessing', 'LauncherControl', 'LauncherReconcile', 'AuditFunction'],
    ];
    expect(everyone.filter(may('s3:PutObject'))).toEqual(['LauncherReconcile']);
    expect(everyone.filter(may('s3:GetObject'))).toEqual(['Accessnlpresearcher', 'Accessplatformadmin']);
    expect(everyone.filter(may('s3:DeleteObject'))).toEqual([]);
  });

  test('a processing job reads no checkpoint', () => {
    const { bucket } = places;
    expect(allowed('Rolesnlpprocessing', [['s3:GetObject', `${bucket('checkpoints')}/runs/nlp/r/step-1/x`]])).toEqual(
      [],
    );
  });
});

test('control passes no role and creates no job', () => {
  const { arn } = places;
  const calls: Call[] = [
    ['iam:PassRole', 'arn:aws:iam::111122223333:role/slipway-research-us-west-2-nlp-execution'],
    ['sagemaker:CreateTrainingJob', arn('sagemaker', JOB)],
    ['sagemaker:CreateProcessingJob', arn('sagemaker', 'processing-job/research-x')],
    ['sagemaker:StopTrainingJob', arn('sagemaker', JOB)],
  ];
  expect(allowed('LauncherControl', calls)).toEqual([]);
});

test('reconcile passes the roles of jobs to SageMaker alone, and reads no data', () => {
  const role = 'arn:aws:iam::111122223333:role/slipway-research-us-west-2-nlp-execution';
  const calls: Call[] = [
    ['iam:PassRole', role, { 'iam:PassedToService': 'lambda.amazonaws.com' }],
    ['iam:PassRole', 'arn:aws:iam::111122223333:role/Admin', { 'iam:PassedToService': 'sagemaker.amazonaws.com' }],
    ['s3:GetObject', `${places.bucket('data')}/tokens/0.bin`],
    ['s3:GetObject', `${places.bucket('checkpoints')}/runs/nlp/r/step-1/x`],
    ['s3:PutObject', `${places.bucket('artifacts')}/drivers/0/launch.sh`],
  ];
  expect(allowed('LauncherReconcile', calls)).toEqual([]);
});
