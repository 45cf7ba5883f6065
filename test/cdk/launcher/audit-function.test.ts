import { expect, test, vi } from 'vitest';
import { auditStatements } from '../../../lib/cdk/access/audit-policy';
import { SYNTH_MS } from '../support/app';
import { person, smallEnvironment } from '../support/small-environment';

vi.setConfig({ testTimeout: SYNTH_MS });

const made = (more: object) => smallEnvironment({ teams: { nlp: {}, speech: {} }, ...more });

test('audit may do exactly this: it reads runs, heartbeats and logs, and changes nothing', () => {
  const statements = auditStatements({
    partition: 'aws',
    account: '111122223333',
    region: 'us-west-2',
    environment: 'research',
    runTableArn: 'TABLE',
    checkpointBucketArn: 'CHECKPOINTS',
    keyArn: 'KEY',
    operationsKeyArn: 'OPERATIONS',
  });
  expect(statements.map(({ actions, resources, conditions }) => ({ actions, resources, conditions }))).toEqual([
    { actions: ['dynamodb:GetItem'], resources: ['TABLE'] },
    { actions: ['dynamodb:Query'], resources: ['TABLE', 'TABLE/index/*'] },
    {
      actions: ['ssm:GetParameter'],
      resources: ['arn:aws:ssm:us-west-2:111122223333:parameter/slipway/environments/research/*'],
    },
    { actions: ['s3:GetObject'], resources: ['CHECKPOINTS/runs/*/heartbeat.json'] },
    {
      actions: ['logs:FilterLogEvents'],
      resources: ['TrainingJobs', 'ProcessingJobs'].flatMap((family) => {
        const group = `arn:aws:logs:us-west-2:111122223333:log-group:/aws/sagemaker/${family}`;
        return [group, `${group}:*`];
      }),
    },
    {
      actions: ['s3:ListBucket'],
      resources: ['CHECKPOINTS'],
      conditions: { StringLike: { 's3:prefix': ['runs/*'] } },
    },
    { actions: ['kms:Decrypt'], resources: ['KEY', 'OPERATIONS'] },
  ]);
});

test('an environment with auditors has the function, an alias for each team, and says so in the descriptors', () => {
  const resources = made({ access: { auditors: person('auditor') } });
  const aliases = Object.entries(resources).filter(
    ([id, { Type }]) => Type === 'AWS::Lambda::Alias' && id.startsWith('Audit'),
  );
  expect(aliases.map(([, { Properties }]) => Properties.Name).sort()).toEqual(['team-nlp', 'team-speech']);
  const descriptors = Object.entries(resources).filter(([id]) => id.startsWith('Descriptor'));
  expect(descriptors).toHaveLength(2);
  for (const [, { Properties }] of descriptors) {
    const text = JSON.stringify(Properties.Value);
    const team = /team-(nlp|speech)|AuditAlias(nlp|speech)/.exec(text.slice(text.indexOf('auditAliasArn')))?.[0];
    expect(text).toContain('auditAliasArn');
    expect(team).toBeTruthy();
  }
});

test('an environment without auditors has none', () => {
  const resources = made({ access: { platformAdmins: person('admin') } });
  expect(Object.keys(resources).filter((id) => id.startsWith('Audit'))).toEqual([]);
  expect(JSON.stringify(resources)).not.toContain('auditAliasArn');
});
