import { App } from 'aws-cdk-lib';
import { Match, Template } from 'aws-cdk-lib/assertions';
import { CodePipelineSource } from 'aws-cdk-lib/pipelines';
import { expect, test, vi } from 'vitest';
import { EnvironmentPipeline, type EnvironmentStack } from '../../lib/cdk';
import { SYNTH_MS, specOf, testApp } from './support/app';

vi.setConfig({ testTimeout: SYNTH_MS });

const ACCOUNTS = { dev: '111122223333', prod: '444455556666' };
const ACCOUNT_OF: Record<string, string> = { ...ACCOUNTS, staging: '777788889999', live: '222233334444' };
const zones = { network: { availabilityZoneIds: ['usw2-az1', 'usw2-az2'] } };
const environment = (more: object = {}) => ({ spec: specOf({ ...zones, ...more }), runs: [], submissions: [] });

function pipelineOf(app: App, environments = [environment({ accounts: ACCOUNTS })], approve?: string[]) {
  return new EnvironmentPipeline(app, 'Pipeline', {
    env: { account: ACCOUNTS.dev, region: 'us-west-2' },
    environments,
    approve,
    source: CodePipelineSource.connection('acme/training', 'main', {
      connectionArn: 'arn:aws:codeconnections:us-west-2:111122223333:connection/00000000-0000-0000-0000-000000000000',
    }),
  });
}

test('each account is a stage in the order of the file, and the last one waits for an approval', () => {
  const pipeline = pipelineOf(testApp());
  pipeline.pipeline.buildPipeline();
  const approval = Match.objectLike({ ActionTypeId: Match.objectLike({ Category: 'Approval' }) });
  Template.fromStack(pipeline).hasResourceProperties('AWS::CodePipeline::Pipeline', {
    Stages: Match.arrayWith([
      Match.objectLike({ Name: 'dev', Actions: Match.not(Match.arrayWith([approval])) }),
      Match.objectLike({ Name: 'prod', Actions: Match.arrayWith([approval]) }),
    ]),
  });
  const stacks = ['dev', 'prod'].map((stage) => {
    const stack = pipeline.node.findChild(stage).node.findChild('Slipway-research-us-west-2') as EnvironmentStack;
    return [stack.account, stack.stackName];
  });
  expect(stacks).toEqual([
    [ACCOUNTS.dev, 'Slipway-research-us-west-2'],
    [ACCOUNTS.prod, 'Slipway-research-us-west-2'],
  ]);
});

/** Stages of a pipeline over files with these stages, in order; `!` stands behind one that waits for an approval. */
function stagesOf(files: Record<string, string[]>): string[] {
  const environments = Object.entries(files).map(([name, stages]) =>
    environment({ name, accounts: Object.fromEntries(stages.map((stage) => [stage, ACCOUNT_OF[stage]])) }),
  );
  const pipeline = pipelineOf(testApp(), environments);
  pipeline.pipeline.buildPipeline();
  const [{ Properties } = { Properties: {} }] = Object.values(
    Template.fromStack(pipeline).findResources('AWS::CodePipeline::Pipeline'),
  );
  const stages = (Properties as { Stages: { Name: string; Actions: { Name: string }[] }[] }).Stages;
  return stages
    .filter(({ Name }) => ACCOUNT_OF[Name])
    .map(({ Name, Actions }) => (Actions.some((action) => action.Name === 'Approve') ? `${Name}!` : Name));
}

test.each([
  [{ nlp: ['dev', 'prod'], vision: ['dev', 'staging', 'prod'] }, ['dev', 'staging', 'prod!']],
  [{ nlp: ['dev', 'prod'], vision: ['staging', 'prod'] }, ['dev', 'staging', 'prod!']],
  [{ nlp: ['prod'], vision: ['dev', 'prod'] }, ['dev', 'prod!']],
  [{ nlp: ['dev', 'prod'], vision: ['dev', 'live'] }, ['dev', 'prod!', 'live!']],
])('merges the orders of %j, with an approval before the last stage of each', (files, stages) => {
  expect(stagesOf(files)).toEqual(stages);
});

test('fails: files with stages in contradictory orders', () => {
  expect(() => stagesOf({ nlp: ['dev', 'staging', 'prod'], vision: ['prod', 'staging'], tests: ['dev'] })).toThrow(
    'accounts: must have one order of stages in all environments, got staging, prod in nlp and prod, staging in vision; reorder them in one file',
  );
});

test('looks nothing up in an account when zones are given by ID', () => {
  const missing = (more: object) => {
    const app = testApp();
    pipelineOf(app, [{ ...environment(), spec: specOf({ accounts: ACCOUNTS, ...more }) }]);
    return (app.synth().manifest.missing ?? []).map(({ provider }) => provider);
  };
  expect(missing(zones)).toEqual([]);
  expect(missing({ network: { ...zones.network, mode: 'vpc-nat' } })).toEqual([]);
  expect(missing({ network: { mode: 'none' } })).toEqual([]);
  expect(missing({})).toEqual(['availability-zones', 'availability-zones']);
});

test('fails: no accounts, an approval of no stage, and one stage in two accounts', () => {
  expect(() => pipelineOf(new App(), [environment()])).toThrow(/research: accounts: must be given in a pipeline/);
  const both = [environment({ accounts: ACCOUNTS }), environment({ name: 'other', accounts: { dev: ACCOUNTS.prod } })];
  expect(() => pipelineOf(new App(), both)).toThrow(/other: accounts.dev: must be 111122223333/);
  expect(() => pipelineOf(new App(), [environment({ accounts: ACCOUNTS })], ['live'])).toThrow(
    /approve: must name stages of accounts \(dev, prod\), got live/,
  );
});
