// What rules are made of: whom they look at, and what becomes of their findings.
import { expect, test } from 'vitest';
import { writingKey } from '../../../lib/core/config/descriptor';
import {
  applyRule,
  issueOf,
  type Rule,
  regionOf,
  rule,
  rulesAbout,
  trainingRule,
  UNSHOWN,
  when,
} from '../../../lib/core/config/rule';
import { BASE, DESCRIPTOR, runOf } from '../../support/runs';

const FINDING = { path: 'name', must: 'must hold', got: 'x', fix: 'change it' };
const RULE: Rule = { id: 'a/b', level: 'warning', check: () => [FINDING] };
const TRAINING = runOf(BASE);
const PROCESSING = runOf({ ...BASE, kind: 'processing' });

test('a finding has the level of its rule, or one of its own', () => {
  const message = 'name: must hold, got x; change it';
  expect(applyRule(RULE, TRAINING, {})).toEqual([{ rule: 'a/b', level: 'warning', path: 'name', message }]);
  expect(issueOf(RULE, { ...FINDING, level: 'info' })).toEqual({ rule: 'a/b', level: 'info', path: 'name', message });
  const { path, ...finding } = FINDING;
  expect([when(true, path, finding), when(false, path, finding)]).toEqual([[FINDING], []]);
});

test('a finding shows the value at its path, unless it has one of its own or shows none', () => {
  const file = runOf({
    ...BASE,
    hyperparameters: { 'a.b': 1, a: { b: 2 } },
    data: [{ channel: 't', s3: 's3://data/t/' }],
  });
  const shown = (path: string, more: object = {}) =>
    applyRule(
      rule('a/b', 'error', () => ({ path, must: 'must hold', fix: 'change it', ...more })),
      file,
      {},
    ).map(({ message }) => message);
  expect(shown('data[0].s3')).toEqual(['data[0].s3: must hold, got s3://data/t/; change it']);
  expect(shown('hyperparameters.a.b')).toEqual(['hyperparameters.a.b: must hold, got 1; change it']);
  expect(shown('data[1].s3')).toEqual(['data[1].s3: must hold; change it']);
  expect(shown('name', { got: undefined })).toEqual(['name: must hold, got nothing; change it']);
  expect(shown('name', { got: UNSHOWN })).toEqual(['name: must hold; change it']);
});

test('a rule of training runs finds nothing in processing runs', () => {
  const rule = trainingRule(RULE);
  expect([rule.check(TRAINING, {}), rule.check(PROCESSING, {})]).toEqual([[FINDING], []]);
  expect(rule).toMatchObject({ id: 'a/b', level: 'warning' });
});

test('a rule about a subject is asked where the run has it, and gets it with run and context', () => {
  const ruleAbout = rulesAbout((run) => (run.name === 'base' ? 0 : undefined));
  const rule = ruleAbout('a/b', 'warning', (run, subject, { region }) => [
    { ...FINDING, got: [run.name, subject, region] },
  ]);
  expect(rule.check(TRAINING, { region: 'r' })).toEqual([{ ...FINDING, got: ['base', 0, 'r'] }]);
  expect(rule.check(runOf({ ...BASE, name: 'other' }), {})).toEqual([]);
  expect(rule.check(PROCESSING, {})).toEqual([]);
});

test('the region is the one that is named, else that of the environment', () => {
  expect(regionOf({ region: 'eu-west-1', descriptor: DESCRIPTOR })).toBe('eu-west-1');
  expect(regionOf({ descriptor: DESCRIPTOR })).toBe('us-west-2');
  expect(regionOf({})).toBeUndefined();
});

test('jobs write with the key of their team, else with that of the environment', () => {
  expect(writingKey({ teamKeyArn: 't', kmsKeyArn: 'k' })).toBe('t');
  expect(writingKey({ kmsKeyArn: 'k' })).toBe('k');
  expect(writingKey({})).toBeUndefined();
});
