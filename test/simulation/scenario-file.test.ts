import { expect, test } from 'vitest';
import { loadScenario } from '../../tools/simulation';
import { formatDuration, parseDuration } from '../../tools/simulation/scenario/duration';
import { writeScenario } from '../../tools/simulation/scenario/write';
import { ENVIRONMENT, PRETRAIN } from './support';

const load = (more: object) =>
  loadScenario(JSON.stringify({ schema: 1, environment: ENVIRONMENT, ...more }), (file) => {
    throw new Error(`no file ${file}`);
  });
const pathsOf = (more: object) => load(more).issues.map(({ path }) => path);
const run = { id: 'a', file: PRETRAIN };

test('a minimal scenario is read, with defaults', () => {
  const { value, issues } = load({ runs: [run] });
  expect(issues).toEqual([]);
  expect(value).toMatchObject({ until: 720 * 3600, runs: [{ id: 'a', team: 'nlp' }] });
});

test.each([
  ['an unknown key', { runs: [{ ...run, trainHours: 3 }] }, 'runs[0].trainHours'],
  [
    'a key of another kind of fault',
    { runs: [run], faults: [{ job: 'a#1', ends: 'Failed', afterEffect: 2 }] },
    'faults[0].afterEffect',
  ],
  ['a fault that does nothing', { runs: [run], faults: [{ job: 'a#1' }] }, 'faults[0]'],
  ['two faults in one', { faults: [{ clock: '1m', events: 'lost' }] }, 'faults[0]'],
  ['an attempt of no run', { runs: [run], faults: [{ job: 'b#1', ends: 'Failed' }] }, 'faults[0].job'],
  ['a call that nobody makes', { faults: [{ call: 's3:DeleteBucket', error: 'AccessDenied' }] }, 'faults[0].call'],
  ['a time without a unit', { until: 720 }, 'until'],
  ['a quota that is none', { limits: { 'ml.p5.48xlarge': 8 } }, 'limits["ml.p5.48xlarge"]'],
  ['a team of no environment', { runs: [{ ...run, team: 'vision' }] }, 'runs[0].team'],
  ['two runs of one id', { runs: [run, run] }, 'runs[1].id'],
  ['a call of no run', { runs: [run], calls: [{ at: '1h', do: 'stop', run: 'b' }] }, 'calls[0].run'],
  ['a rate of no call', { rates: { 'ssm:GetParameters': 1 } }, 'rates["ssm:GetParameters"]'],
  ['an end before the start', { faults: [{ at: '2h', to: '1h', events: 'lost' }] }, 'faults[0].to'],
])('fails: %s, at its path', (_what, more, path) => {
  expect(pathsOf(more)).toEqual([path]);
});

test('what is wrong with the environment is said with its path', () => {
  expect(pathsOf({ environment: { name: 'TOO-BIG', regions: { 'us-west-2': {} } } })).toEqual(['environment.name']);
  expect(pathsOf({ environment: { ...ENVIRONMENT, regions: { 'us-west-2': {}, 'us-east-1': {} } } })).toEqual([
    'region',
  ]);
});

test('durations are numbers with a unit, decimals too', () => {
  expect(['0h', '90s', '1.5h', '2m', '3d', '-120s'].map(parseDuration)).toEqual([0, 90, 5400, 120, 259_200, -120]);
  expect([parseDuration('5'), parseDuration(5), parseDuration('h')]).toEqual([undefined, undefined, undefined]);
  expect([0, 90, 5400, 259_200, -120].map(formatDuration).map(parseDuration)).toEqual([0, 90, 5400, 259_200, -120]);
});

test('a written scenario is read as it was', () => {
  const more = {
    runs: [{ ...run, at: '1.5h' }],
    faults: [{ at: '90s', to: '2h', describeLagSeconds: 60 }, { clock: '-120s' }],
    until: '30h',
  };
  const { value } = load(more);
  const again = loadScenario(writeScenario(value?.source ?? ({} as never)), () => '');
  expect(again.value?.source).toEqual(value?.source);
});
