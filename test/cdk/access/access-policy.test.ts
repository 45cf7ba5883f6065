import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  auditorStatements,
  ciStatements,
  platformAdminStatements,
  researcherStatements,
} from '../../../lib/cdk/access/access-policy';
import type { AccessContext } from '../../../lib/cdk/access/statements/personas';
import { evaluate, type Statement } from '../../templates/support/policy';

const CONTEXT: AccessContext = {
  partition: 'aws',
  account: '111122223333',
  region: 'us-west-2',
  environment: 'research',
  dataBucketArn: 'arn:aws:s3:::data',
  checkpointBucketArn: 'arn:aws:s3:::checkpoints',
  artifactBucketArn: 'arn:aws:s3:::artifacts',
  keyArn: 'arn:aws:kms:us-west-2:111122223333:key/k',
  runTableArn: 'arn:aws:dynamodb:us-west-2:111122223333:table/runs',
  repositoryArn: 'arn:aws:ecr:us-west-2:111122223333:repository/slipway-research',
  jobRoleArns: { nlp: ['arn:role:nlp-execution', 'arn:role:nlp-processing'], speech: ['arn:role:speech-execution'] },
  writableData: { nlp: ['teams/nlp/', 'tokens/'], speech: ['teams/speech/'] },
  aliasArns: { nlp: 'arn:control:team-nlp', speech: 'arn:control:team-speech' },
};
type Statements = ReturnType<typeof ciStatements>;
const allowing = (statements: Statements, action: string) => statements.filter((s) => s.actions.includes(action));
const resourcesOf = (statements: Statements, action: string) =>
  allowing(statements, action).flatMap((s) => s.resources);

describe('a researcher', () => {
  const statements = researcherStatements(CONTEXT, 'nlp');

  test("invokes the own team's alias and no other", () => {
    expect(resourcesOf(statements, 'lambda:InvokeFunction')).toEqual(['arn:control:team-nlp']);
  });

  test("reads shared data and the own team's runs, and not what belongs to another team", () => {
    expect(allowing(statements, 's3:GetObject').filter((s) => s.deny)).toMatchObject([
      { resources: ['arn:aws:s3:::data/teams/speech/*'] },
    ]);
    expect(allowing(statements, 's3:GetObject').flatMap((s) => (s.deny ? [] : s.resources))).toEqual([
      'arn:aws:s3:::data/*',
      'arn:aws:s3:::checkpoints/runs/nlp/*',
      'arn:aws:s3:::artifacts/runs/nlp/*',
      'arn:aws:s3:::artifacts/teams/nlp/page/index.html',
    ]);
  });

  const mayList = (context: Record<string, string>, of = statements) => {
    const given = of.map(({ sid: Sid, deny, actions, resources, conditions }) => ({
      ...{ Sid, Effect: deny ? ('Deny' as const) : ('Allow' as const), Action: actions, Resource: resources },
      Condition: conditions as Statement['Condition'],
    }));
    const resource = CONTEXT.dataBucketArn;
    return evaluate(given, { action: 's3:ListBucket', resource, context }) === 'Allow';
  };

  test('lists shared data, the data of the own team and the folders above them', () => {
    for (const prefix of ['tokens/', 'tokens', 'x', 'teams/nlp/', 'teams/nlp/a/b', 'teams/nlp', 'teamsters/'])
      expect([prefix, mayList({ 's3:prefix': prefix })]).toEqual([prefix, true]);
    for (const prefix of ['', 't', 'teams/', 'teams/n', 'teams/speech'])
      expect([prefix, mayList({ 's3:prefix': prefix, 's3:delimiter': '/' })]).toEqual([prefix, true]);
    expect(mayList({ 's3:delimiter': '/' })).toBe(true);
  });

  test('fails: a list that contains names of objects of another team, with whatever prefix and delimiter', () => {
    const prefix = fc.integer({ min: 0, max: 'teams/speech/a/b'.length }).map((n) => 'teams/speech/a/b'.slice(0, n));
    const delimiter = fc.constantFrom(undefined, '', '/', 'e', 'speech');
    fc.assert(
      fc.property(fc.option(prefix, { nil: undefined }), delimiter, (begins, ends) => {
        // What the service would show of `teams/speech/a/b`: all of it, or the part that ends with the delimiter.
        const rest = 'teams/speech/a/b'.slice((begins ?? '').length);
        const shown = ends
          ? (begins ?? '') + rest.slice(0, rest.indexOf(ends) < 0 ? undefined : rest.indexOf(ends) + ends.length)
          : 'teams/speech/a/b';
        const context = {
          ...(begins !== undefined && { 's3:prefix': begins }),
          ...(ends !== undefined && { 's3:delimiter': ends }),
        };
        if (shown.startsWith('teams/speech/a')) expect([context, mayList(context)]).toEqual([context, false]);
      }),
      { numRuns: 300, verbose: 1 },
    );
  });

  test('lists everything where there is no other team', () => {
    const alone = researcherStatements({ ...CONTEXT, writableData: { nlp: ['teams/nlp/'] } }, 'nlp');
    expect(mayList({}, alone)).toBe(true);
  });

  test("writes into the team's own places and nowhere else: not driver, not job files", () => {
    expect(resourcesOf(statements, 's3:PutObject')).toEqual([
      'arn:aws:s3:::data/teams/nlp/*',
      'arn:aws:s3:::data/tokens/*',
    ]);
    expect(allowing(statements, 's3:DeleteObject')).toEqual([]);
  });

  test("describes the own team's jobs, and reads logs through the launcher alone", () => {
    expect(allowing(statements, 'sagemaker:DescribeTrainingJob').map(({ conditions }) => conditions)).toEqual([
      { StringEquals: { 'aws:ResourceTag/slipway:team': 'nlp' } },
    ]);
    expect(statements.flatMap((s) => s.actions).filter((action) => action.startsWith('logs:'))).toEqual([]);
  });

  test("looks at the own team's roles and the environment's image, as preflight does", () => {
    expect(resourcesOf(statements, 'iam:GetRole')).toEqual(CONTEXT.jobRoleArns.nlp);
    expect(resourcesOf(statements, 'ecr:DescribeImages')).toEqual([CONTEXT.repositoryArn]);
  });

  test("reads the names of the teams and the own team's descriptor, and lists no others", () => {
    expect(allowing(statements, 'ssm:GetParametersByPath')).toEqual([]);
    expect(resourcesOf(statements, 'ssm:GetParameter')).toEqual([
      'arn:aws:ssm:us-west-2:111122223333:parameter/slipway/environments/research',
      'arn:aws:ssm:us-west-2:111122223333:parameter/slipway/environments/research/nlp',
    ]);
  });
});

test('the platform team invokes every alias and keeps the shared data', () => {
  const statements = platformAdminStatements(CONTEXT);
  expect(resourcesOf(statements, 'lambda:InvokeFunction')).toEqual(['arn:control:team-nlp', 'arn:control:team-speech']);
  expect(resourcesOf(statements, 's3:DeleteObject')).toEqual(['arn:aws:s3:::data/*']);
});

test('an auditor sees what happened and no data, and starts nothing', () => {
  const statements = auditorStatements(CONTEXT);
  expect(resourcesOf(statements, 'dynamodb:Query')).toContain(CONTEXT.runTableArn);
  for (const action of ['s3:GetObject', 's3:PutObject', 'lambda:InvokeFunction', 'dynamodb:PutItem'])
    expect([action, allowing(statements, action)]).toEqual([action, []]);
  const asking = auditorStatements({ ...CONTEXT, auditAliasArns: ['arn:audit:team-nlp'] });
  expect(resourcesOf(asking, 'lambda:InvokeFunction')).toEqual(['arn:audit:team-nlp']);
});

test('a pipeline checks and spends nothing', () => {
  const actions = ciStatements(CONTEXT).flatMap((s) => s.actions);
  expect(actions.filter((a) => !/:(Get|List|Describe|Search)/.test(a))).toEqual([]);
  expect(actions).not.toContain('s3:GetObject');
});

test('nobody may create a job or pass a role, and no action is a wildcard', () => {
  const all = [
    ...researcherStatements(CONTEXT, 'nlp'),
    ...platformAdminStatements(CONTEXT),
    ...auditorStatements(CONTEXT),
    ...ciStatements(CONTEXT),
  ];
  const actions = all.flatMap((s) => s.actions);
  expect(actions.filter((a) => /Create(Training|Processing)Job|PassRole|\*/.test(a))).toEqual([]);
  for (const s of all.filter((x) => x.resources.some((r) => r.includes('*')))) expect(s.wildcard).toMatch(/\.$/);
});
