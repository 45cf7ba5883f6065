import { beforeEach, describe, expect, test } from 'vitest';
import { onQuestion } from '../../../lib/control/audit/index';
import type { ReadDeps } from '../../../lib/control/control/deps';
import { readDeps } from '../../../lib/control/control/deps';
import { type ControlPayload, READ_ACTIONS } from '../../../lib/core/contracts/control';
import { ALIAS, type FakeWorld, fakeWorld, RUN_FILE } from '../support/fake-world';

const AUDIT = ALIAS.replace('-control:', '-audit:');

let world: FakeWorld;
let deps: ReadDeps;
let runId: string;
beforeEach(async () => {
  world = fakeWorld();
  runId = await world.launch();
  const { environment, region, ssm, s3, store, readLog, now } = world.control;
  deps = { environment, region, ssm, s3, store, readLog, now };
});

describe('audit', () => {
  test.each<ControlPayload>([
    { action: 'list' },
    { action: 'events' },
    { action: 'status', runId: 'RUN', timeline: true, configuration: true },
    { action: 'logs', runId: 'RUN', attempt: 1 },
  ])('answers $action as control does', async (question) => {
    const payload = 'runId' in question ? { ...question, runId } : question;
    const answer = await onQuestion(deps, payload, AUDIT);
    expect(answer).toMatchObject({ ok: true });
    expect(answer).toEqual(await world.ask(payload));
  });

  test.each<ControlPayload>([
    { action: 'stop', runId: 'r' },
    { action: 'resume', runId: 'r' },
    { action: 'release', runId: 'r' },
    { action: 'note', runId: 'r', text: 'x' },
    { action: 'shell', runId: 'r' },
    { action: 'start', runId: 'r', confirm: true },
    { action: 'start', runFile: RUN_FILE, clientRequestId: 'c' },
    { action: 'validate', runFile: RUN_FILE },
    { action: 'plan', runFile: RUN_FILE },
  ])('refuses $action', async (payload) => {
    expect(READ_ACTIONS).not.toContain(payload.action);
    const before = JSON.stringify([...world.table.items]);
    const answer = await onQuestion(deps, 'runId' in payload ? { ...payload, runId } : payload, AUDIT);
    expect(answer).toMatchObject({ ok: false, issues: [{ rule: 'control/payload', path: 'action' }] });
    expect(JSON.stringify(answer)).toContain(`got ${payload.action}`);
    expect(JSON.stringify([...world.table.items])).toBe(before);
  });

  test("takes the team from the alias: another team's run is not there", async () => {
    const answer = await onQuestion(deps, { action: 'status', runId }, AUDIT.replace('team-nlp', 'team-speech'));
    expect(answer).toMatchObject({ ok: false, issues: [{ rule: 'run/unknown' }] });
  });

  test('fails: invoked past an alias', async () => {
    const answer = await onQuestion(deps, { action: 'list' }, AUDIT.replace(':team-nlp', ''));
    expect(answer).toMatchObject({ ok: false, issues: [{ rule: 'control/alias' }] });
  });

  test('fails: a function without its variables', () => {
    expect(() => readDeps({ AWS_REGION: 'us-west-2', SLIPWAY_ENVIRONMENT: 'research' })).toThrow(
      'environment variable SLIPWAY_RUN_TABLE is not set',
    );
  });
});
