// Every call that a function, a job or a person makes is allowed by exactly one statement, and every statement is needed by a call,
// or by a service that acts with the role. The calls are read from the code (code-calls.ts), what they ask of IAM is written beside
// them (handler-uses.ts, job-uses.ts, people-uses.ts), and both are held against the templates.
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { SYNTH_MS } from '../../cdk/support/app';
import { policiesOf } from '../../templates/laws/authorization';
import { applies, evaluate, matches, type Statement } from '../../templates/support/policy';
import type { Resources } from '../../templates/support/values';
import { actionsOf } from './actions';
import { type CodeEntry, containerCalls, readCalls } from './code-calls';
import { HANDLER_ROLES, type HandlerRole } from './handler-uses';
import { executionUses, processingUses } from './job-uses';
import { PERSONAS, VERBS } from './people-uses';
import { placesIn, resourcesFor } from './places';
import type { Ask, Places, Use } from './use';

vi.setConfig({ testTimeout: SYNTH_MS });

/** Roles whose statements the CDK writes. */
const OF_THE_CDK: Readonly<Record<string, string>> = {
  OnEventRole: 'the provider framework invokes the function of the custom resource and starts its waiter',
  WaiterRole: 'the provider framework asks whether the custom resource is ready',
  waiterstatemachineRole: 'the state machine of the provider framework',
  FlowLogIAMRole: 'VPC flow logs; https://docs.aws.amazon.com/vpc/latest/userguide/flow-logs-iam-role.html',
  ImageBuildRole:
    'CodeBuild runs docker with it: build commands are no calls of ours (test/cdk/image/image-build-spec.test.ts)',
};

const TABLES: readonly { policy: string; uses(places: Places): Use[] }[] = [
  ...HANDLER_ROLES,
  { policy: 'Rolesnlpexecution', uses: executionUses },
  { policy: 'Rolesnlpprocessing', uses: processingUses },
  ...PERSONAS,
];

/** The template that a role is in, `everything` where it is in that. */
let templates: ReturnType<typeof resourcesFor>;
/** The calls of a function or verb. */
let callsOf: (entry: CodeEntry) => string[];
beforeAll(async () => {
  templates = resourcesFor();
  callsOf = await readCalls([...HANDLER_ROLES.map(entryOf), ...Object.keys(VERBS).map(verbEntryOf)]);
}, SYNTH_MS);

const entryOf = ({ file, entry = 'handler' }: Pick<HandlerRole, 'file' | 'entry'>): CodeEntry => ({
  file: `lib/control/${file}/index`,
  name: entry,
});

function verbEntryOf(name: string): CodeEntry {
  const verb = VERBS[name];
  if (!verb) throw new Error(`no verb ${name}`);
  return { file: `lib/cli/${verb.file}`, name: verb.entry };
}

function templateOf(policy: string): Resources {
  if (policy.includes('Adopt')) return templates.adopted;
  if (policy.startsWith('NetworkExisting')) return templates.existing;
  if (policy.includes('Existing')) return templates.ownStorage;
  return policy.startsWith('Run') ? templates.registered : templates.everything;
}

function statementsOf(policy: string): Statement[] {
  const found = policiesOf(templateOf(policy)).filter(
    ([id]) => id.startsWith(policy) && templateOf(policy)[id]?.Type === 'AWS::IAM::Policy',
  );
  expect(found, policy).toHaveLength(1);
  return found[0]?.[1] ?? [];
}

const list = (value: unknown): string[] => ([] as unknown[]).concat(value ?? []).map(String);
const text = ({ action, resource }: Ask) => `${action} on ${resource}`;
const allowing = (statements: readonly Statement[], request: Ask) =>
  statements.filter((statement) => statement.Effect === 'Allow' && applies(statement, request));

/** Actions and resources of allowing statements that no use asks for, by the name of the statement. */
function unneeded(statements: readonly Statement[], uses: readonly Use[]): string[] {
  return statements
    .filter(({ Effect }) => Effect === 'Allow')
    .flatMap((statement) => {
      const hits = uses.flatMap((use) => use.asks).filter((request) => applies(statement, request));
      const actions = list(statement.Action).filter((action) => !hits.some((hit) => hit.action === action));
      const resources = list(statement.Resource).filter((one) => !hits.some((hit) => matches(one, hit.resource)));
      return [...actions, ...resources].map((what) => `${statement.Sid}: ${what}`);
    });
}

describe.each(TABLES.map(({ policy, uses }) => [policy, uses] as const))('%s', (policy, usesIn) => {
  const uses = () => usesIn(placesIn(templateOf(policy)));

  test('each call is allowed by exactly one statement', () => {
    const statements = statementsOf(policy);
    const requests = uses().flatMap((use) => use.asks);
    const wrong = requests.filter(
      (request) => allowing(statements, request).length !== 1 || evaluate(statements, request) !== 'Allow',
    );
    expect(wrong.map((request) => `${text(request)}: ${allowing(statements, request).map(({ Sid }) => Sid)}`)).toEqual(
      [],
    );
  });

  test('each statement says what it is for, and no action or resource of it is unneeded', () => {
    const statements = statementsOf(policy);
    expect(statements.filter(({ Sid }) => !Sid)).toEqual([]);
    expect(unneeded(statements, uses())).toEqual([]);
  });

  test('what is asked for a call is what IAM asks for it', () => {
    const wrong = uses().flatMap(({ calls = [], asks }) =>
      calls.flatMap((name) =>
        asks
          .filter(({ action }) => !action.startsWith('kms:') && !actionsOf(name).includes(action))
          .map((request) => `${name}: ${text(request)}`),
      ),
    );
    expect(wrong).toEqual([]);
    expect(uses().filter(({ calls, because, source }) => !calls && !(because && source))).toEqual([]);
  });
});

const callsIn = (uses: readonly Use[]) => [...new Set(uses.flatMap(({ calls = [] }) => calls))].sort();

describe('the calls of the code are those of the tables', () => {
  test.each(HANDLER_ROLES.map((role) => [role.policy, role] as const))('%s', (policy, role) => {
    expect(callsIn(role.uses(placesIn(templateOf(policy))))).toEqual(callsOf(entryOf(role)));
  });

  test('driver and trainer', () => {
    expect(callsIn(executionUses(placesIn(templates.everything)))).toEqual(containerCalls());
  });

  test.each(PERSONAS.map((persona) => [persona.policy, persona] as const))('%s', (_, { verbs, uses }) => {
    const found = verbs.map((name) => {
      const { deployers = {} } = VERBS[name] ?? {};
      const calls = callsOf(verbEntryOf(name));
      expect(
        Object.keys(deployers).filter((call) => !calls.includes(call)),
        name,
      ).toEqual([]);
      return calls.filter((call) => !(call in deployers));
    });
    const known = callsIn(uses(placesIn(templates.everything)));
    expect(known).toEqual([...new Set(found.flat())].sort());
  });
});

test('every policy of the templates is in a table, or is written by the CDK', () => {
  const others = Object.values(templates).flatMap((resources) =>
    Object.keys(resources).filter(
      (id) =>
        resources[id]?.Type === 'AWS::IAM::Policy' &&
        !TABLES.some(
          ({ policy }) => id.startsWith(policy.replace('nlp', '')) || id.replace('speech', 'nlp').startsWith(policy),
        ) &&
        !Object.keys(OF_THE_CDK).some((role) => id.includes(role)),
    ),
  );
  expect([...new Set(others)]).toEqual([]);
});

describe('fails', () => {
  const broken = (change: (statements: Statement[]) => void) => {
    const statements = structuredClone(statementsOf('LauncherControlRole'));
    change(statements);
    return statements;
  };
  const uses = () => HANDLER_ROLES[0]?.uses(placesIn(templates.everything)) ?? [];

  test('a statement that no call needs', () => {
    const statements = broken((all) =>
      all.push({ Sid: 'More', Effect: 'Allow', Action: 's3:AbortMultipartUpload', Resource: '*' }),
    );
    expect(unneeded(statements, uses())).toEqual(['More: s3:AbortMultipartUpload', 'More: *']);
  });

  test('an action that was added to a statement that is needed', () => {
    const statements = broken((all) => {
      const put = all.find(({ Sid }) => Sid === 'SeeUploads');
      if (put) put.Action = [...list(put.Action), 's3:GetObjectVersion'];
    });
    expect(unneeded(statements, uses())).toEqual(['SeeUploads: s3:GetObjectVersion']);
  });

  test('a call without its statement', () => {
    const statements = broken((all) => all.splice(0, all.length, ...all.filter(({ Sid }) => Sid !== 'QueueRuns')));
    const denied = uses()
      .flatMap(({ asks }) => asks)
      .filter((request) => allowing(statements, request).length === 0);
    expect(denied.map(({ action }) => action)).toEqual(['sqs:SendMessage']);
  });

  test('code that makes a call which no table has', () => {
    expect(callsOf({ file: 'lib/control/log-retention/index', name: 'handler' })).toEqual([
      'cloudformation:DescribeStacks',
      'logs:CreateLogGroup',
      'logs:DescribeLogGroups',
      'logs:PutRetentionPolicy',
    ]);
  });
});
