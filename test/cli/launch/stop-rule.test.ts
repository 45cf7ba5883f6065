import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { earlyStop } from '../../../lib/cli/launch/matrix/matrix';
import { isLoser, parseStopRule, type Sample } from '../../../lib/cli/launch/matrix/stop-rule';
import type { Descriptor } from '../../../lib/core/config/descriptor';
import type { StatusAnswer } from '../../../lib/core/contracts/control';
import { mockClient } from '../../support/mocked-clients';

const RULE = 'loss > best * 1.1 after 500 steps';
const constant = (value: number, ...steps: number[]): Sample[] => steps.map((step) => ({ step, value }));

describe('--stop-when', () => {
  test.each([
    [RULE, { metric: 'loss', isAbove: true, bound: { best: true, operator: '*', value: 1.1 }, afterSteps: 500 }],
    ['loss>best+0.2', { bound: { best: true, operator: '+', value: 0.2 }, afterSteps: 0 }],
    [
      'goodput < 0.5 after 1 step',
      { metric: 'goodput', isAbove: false, bound: { best: false, value: 0.5 }, afterSteps: 1 },
    ],
    ['spendUsd > 1e3', { bound: { best: false, value: 1000 } }],
    ['loss > best', { bound: { best: true, operator: '*', value: 1 } }],
  ])('reads %s', (text, rule) => {
    expect(parseStopRule(text)).toMatchObject({ text, ...rule });
  });

  test.each([
    '',
    'loss',
    'loss > ',
    'accuracy > 3',
    'loss >> 3',
    'loss > best * x',
    'loss > 3 after soon',
    '__proto__ > 3',
  ])('fails: %j is no rule', (text) => {
    expect(() => parseStopRule(text)).toThrow(/--stop-when: must compare loss, goodput or spendUsd with/);
  });
});

describe('a run of a sweep', () => {
  const rule = parseStopRule(RULE);

  test('is stopped when it is behind the best at the same step, and not before it has made the steps', () => {
    const best = constant(2, 100, 500, 900);
    expect(isLoser(rule, constant(2.3, 500), [best])).toBe(true);
    expect(isLoser(rule, constant(2.1, 500), [best])).toBe(false);
    expect(isLoser(rule, constant(9, 499), [best])).toBe(false);
    expect(isLoser(rule, [], [best])).toBe(false);
  });

  test('that began later is compared with what the others were at its step', () => {
    const ahead = [...constant(4, 500), ...constant(1, 5000, 5001, 5002)];
    expect(isLoser(rule, constant(4.1, 600), [ahead])).toBe(false);
    expect(isLoser(rule, constant(4.1, 5002), [ahead])).toBe(true);
  });

  test.each([
    ['spendUsd > best * 2 after 100 steps', 50, 1],
    ['goodput < best * 0.9 after 100 steps', 0.8, 0.99],
  ])('is not compared with one that has not reached its step: %s', (text, own, early) => {
    expect(isLoser(parseStopRule(text), constant(own, 900), [constant(early, 3)])).toBe(false);
    expect(isLoser(parseStopRule(text), constant(own, 900), [constant(early, 899, 901)])).toBe(true);
  });

  test('is judged by the median of three observations, so that one bad step does not end it', () => {
    const best = constant(2, 500, 600, 700);
    expect(isLoser(rule, [...constant(2, 500, 600), { step: 700, value: 9 }], [best])).toBe(false);
    expect(isLoser(rule, [{ step: 500, value: 2 }, ...constant(9, 600, 700)], [best])).toBe(true);
  });

  test('without others has nobody to be behind; a number needs nobody', () => {
    expect(isLoser(rule, constant(9, 600), [])).toBe(false);
    expect(isLoser(parseStopRule('loss > 3'), constant(9, 600), [])).toBe(true);
  });

  test('one run of any sweep is left by a rule that compares with best', () => {
    const run = fc.array(fc.record({ step: fc.integer({ min: 0, max: 99 }), value: fc.integer({ min: 1, max: 50 }) }), {
      minLength: 1,
      maxLength: 5,
    });
    const ofSteps = (samples: Sample[]) => samples.map((s) => ({ ...s, step: 99 }));
    fc.assert(
      fc.property(
        fc.array(run, { minLength: 1, maxLength: 8 }),
        fc.constantFrom('* 0.5', '- 3', '* 1.1'),
        (runs, by) => {
          const all = runs.map(ofSteps);
          const any = parseStopRule(`loss > best ${by}`);
          expect(
            all.some(
              (own, i) =>
                !isLoser(
                  any,
                  own,
                  all.filter((_, j) => j !== i),
                ),
            ),
          ).toBe(true);
        },
      ),
    );
  });
});

test('a loser is stopped once, through the launcher, and a failed call is made again', async () => {
  const lambda = mockClient(LambdaClient);
  let failures = 1;
  lambda.on(InvokeCommand).callsFake(() => {
    if (failures-- > 0) throw Object.assign(new Error('slow down'), { name: 'TooManyRequestsException' });
    return { Payload: Buffer.from(JSON.stringify({ ok: true, runId: 'b', desiredState: 'stop' })) };
  });
  const said: string[] = [];
  const terminal = { out: () => undefined, err: (text: string) => said.push(text) };
  const descriptor = { name: 'lab', team: 'nlp', region: 'us-west-2', controlAliasArn: 'arn:alias' } as Descriptor;
  const early = earlyStop(parseStopRule(RULE), descriptor, terminal);
  const status = (runId: string, step: number, loss: number) =>
    ({ runId, state: 'running', desiredState: 'run', step, loss }) as StatusAnswer;
  await early.observe(status('a', 500, 2));
  await early.observe(status('b', 500, 3));
  expect([...early.stopped]).toEqual([]);
  await early.observe(status('b', 500, 3));
  await early.observe(status('b', 510, 3));
  expect([...early.stopped]).toEqual(['b']);
  const asked = lambda.commandCalls(InvokeCommand).map(({ args }) => JSON.parse(String(args[0].input.Payload)));
  expect(asked).toHaveLength(2);
  expect(asked[1]).toEqual({ action: 'stop', runId: 'b', reason: `--stop-when ${RULE}` });
  expect(said).toEqual([
    `b: stopped early: ${RULE}; run slipway resume b --environment lab/nlp --region us-west-2 to continue it`,
  ]);
});
