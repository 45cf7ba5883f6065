import { describe, expect, test } from 'vitest';
import { readScenario, type Scenario } from '../../tools/simulation/scenario/load';
import { play } from '../../tools/simulation/simulate';
import { broken, ENVIRONMENT, LIMITS, played, run, runOf } from './support';

describe('the guards of the stack', () => {
  const calls = [
    { at: '2h', do: 'replace-key' },
    { at: '3h', do: 'delete-stack' },
    { at: '8h', do: 'replace-key' },
    { at: '9h', do: 'delete-stack' },
  ];

  test('refuse while a run trains, and let the same change pass once it is over; then nothing is invoked any more', async () => {
    const { value } = readScenario(
      {
        schema: 1,
        environment: ENVIRONMENT,
        limits: LIMITS,
        runs: [run('a'), run('late', { at: '10h' })],
        calls,
        until: '12h',
      },
      () => '',
    );
    const { result, world } = await play(value as Scenario, 1);
    expect(broken(result)).toEqual([]);
    expect(world.stack.answers).toEqual([
      {
        at: expect.any(Number),
        what: 'replace-key',
        refusal: expect.stringMatching(
          /^this update, which replaces role, network or key, must not hit live runs, got a-/,
        ),
      },
      {
        at: expect.any(Number),
        what: 'delete-stack',
        refusal: expect.stringMatching(/^this deletion must not hit live runs, got a-/),
      },
      { at: expect.any(Number), what: 'replace-key' },
      { at: expect.any(Number), what: 'delete-stack' },
    ]);
    expect(runOf(result, 'late').state).toBe('not-started');
  });

  test('fails: a guard that sees no live run breaks no-orphan', async () => {
    const faults = [
      { call: 'dynamodb:Query', key: 'active-runs', empty: true },
      { call: 'sagemaker:ListTrainingJobs', empty: true },
    ];
    const result = await played({ calls: calls.slice(0, 2), faults, until: '4h' });
    expect(broken(result).map(({ name }) => name)).toContain('no-orphan');
  });
});
