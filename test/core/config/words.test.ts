// How values, paths and lists are written in messages, and how texts of the file are read.
import { describe, expect, test } from 'vitest';
import { cents } from '../../../lib/core/config/formats/numbers';
import { bucketAndKey, parseS3Uri } from '../../../lib/core/config/formats/places';
import { textTable } from '../../../lib/core/config/formats/plain-text';
import { secretPrefix, secretReference } from '../../../lib/core/config/formats/secrets';
import { formatPath, formatValue, hasErrors, issue, orList } from '../../../lib/core/config/issue';
import { loadRun } from '../../../lib/core/config/load';
import { applyOverrides, parsePath } from '../../../lib/core/config/reading/overrides';

test.each<[unknown, string]>([
  [undefined, 'nothing'],
  ['', "''"],
  ['a', 'a'],
  [null, 'null'],
  [Number.NaN, 'NaN'],
  [Number.POSITIVE_INFINITY, 'Infinity'],
  [{ a: [1] }, '{"a":[1]}'],
  ['a \n  b\r\nc', 'a b c'],
  ['x'.repeat(80), 'x'.repeat(80)],
  ['x'.repeat(81), `${'x'.repeat(77)}...`],
])('the value %j is written %s', (value, text) => {
  expect(formatValue(value)).toBe(text);
});

test.each<[PropertyKey[], string]>([
  [[], ''],
  [['data', 1, 's3'], 'data[1].s3'],
  [['hyperparameters', 'a.b'], 'hyperparameters["a.b"]'],
  [['a.b', 'c'], '["a.b"].c'],
  [[0], '[0]'],
  [['a-b', '1x'], 'a-b["1x"]'],
])('the path %j is written %s, and read back', (path, text) => {
  expect(formatPath(path)).toBe(text);
  if (path.length > 0) expect(parsePath(text)).toEqual(path);
  expect(parsePath(`.${text}`)).toBeUndefined();
});

test.each(['', 'a..b', 'a.', 'a[', 'a[x]', 'a b', '1a'])('%j is no path', (text) => {
  expect(parsePath(text)).toBeUndefined();
});

test('lists are written with their last word apart', () => {
  expect([[], ['a'], ['a', 'b'], ['a', 'b', 3]].map((words) => orList(words))).toEqual([
    '',
    'a',
    'a or b',
    'a, b or 3',
  ]);
  expect(orList(['a', 'b'], 'and')).toBe('a and b');
});

test('a message names the file where it has no path, and what was given only where something was', () => {
  const text = { must: 'must hold', fix: 'change it' };
  expect(issue('r', 'error', '', text).message).toBe('file: must hold; change it');
  expect(issue('r', 'error', 'a', { ...text, got: undefined }).message).toBe('a: must hold, got nothing; change it');
  const levels = (['warning', 'info', 'error'] as const).map((level) => issue('r', level, 'a', text));
  expect([hasErrors([]), hasErrors(levels.slice(0, 2)), hasErrors(levels)]).toEqual([false, false, true]);
});

describe('--set', () => {
  const set = (data: unknown, ...overrides: string[]) => applyOverrides(data, overrides).data;

  test('makes the sections and lists on its way, and removes what has no value', () => {
    expect(set({}, 'a.b[0].c=1')).toEqual({ a: { b: [{ c: 1 }] } });
    expect(set({ a: null }, 'a.b=x')).toEqual({ a: { b: 'x' } });
    expect(set({ a: 1, b: 2 }, 'a= ')).toEqual({ b: 2 });
    expect(set(undefined, 'a=1')).toEqual({ a: 1 });
    expect(set({}, 'a["b.c"]=1')).toEqual({ a: { 'b.c': 1 } });
  });

  test('reads values as YAML, text and broken YAML as written, and changes a copy', () => {
    const isText = (path: readonly PropertyKey[]) => path.join('.') === 'e.f';
    const { data: made } = applyOverrides({}, ['a=[1, x]', 'b=true', 'c=[', 'd=a=b', 'e.f=2.10'], undefined, isText);
    expect(made).toEqual({ a: [1, 'x'], b: true, c: '[', d: 'a=b', e: { f: '2.10' } });
    expect(applyOverrides({}, ['e.f="2.10"'], undefined, isText).data).toEqual({ e: { f: '2.10' } });
    const data = { a: 1 };
    set(data, 'a=2');
    expect(data).toEqual({ a: 1 });
  });

  test.each(['a', '=1', 'a.b=1', 'constructor.x=1', 'b.prototype=1', '__proto__=1', 'b.__proto__.c=1'])(
    'fails: %s',
    (override) => {
      const { data, issues } = applyOverrides({ a: 'text' }, [override]);
      expect(issues).toMatchObject([{ rule: 'schema/set' }]);
      expect(Object.getPrototypeOf(data)).toBe(Object.prototype);
      expect(({} as { c?: unknown }).c).toBeUndefined();
    },
  );
});

describe('a message of the schema', () => {
  const messages = (more: string) =>
    loadRun(`name: a\ncode: { source: ./src }\ncompute: { instanceType: ml.m5.large }\n${more}\n`).issues.map(
      (i) => i.message,
    );

  test.each([
    ['tags: 5', 'tags: must be a section, got 5; change the value'],
    ['after: x', 'after: must be a list, got x; change the value'],
    ['priority: 1.5', 'priority: must be a whole number, got 1.5; change the value'],
    ['environment: 5', 'environment: must be text, got 5; put it in quotes'],
    ['environment: true', 'environment: must be text, got true; change the value'],
    ['kind: dance', 'kind: must be training or processing, got dance; use one of them'],
    ['limits: { maxCostUsd: 0 }', 'limits.maxCostUsd: must be more than 0, got 0; use more than 0'],
    ['limits: { maxAttempts: 0 }', 'limits.maxAttempts: must be at least 1, got 0; use at least 1'],
    ['data: [{ s3: s3://a/ }]', 'data[0].channel: must be given (text); add channel'],
  ])('about %s', (more, message) => {
    expect(messages(more)).toContain(message);
  });

  test('about an unknown option names those that are near, and all where none is', () => {
    expect(messages('limits: { maxCost: 5 }')[0]).toMatch(
      /^limits.maxCost: must be a known option, got maxCost; use .*maxCostUsd.*, or remove it$/,
    );
    const offered = (key: string) =>
      (/; use (.*), or remove it$/.exec(messages(`${key}: 1`)[0] ?? '')?.[1] ?? '').split(/, | or /);
    expect([offered('codes'), offered('Instance_count').length > 20]).toEqual([['code'], true]);
    expect(offered('license')).toEqual(expect.arrayContaining(['name', 'model', 'compute']));
  });
});

test('S3 URIs have a bucket and a key, which may be empty', () => {
  expect(parseS3Uri('s3://b/k/x')).toEqual({ bucket: 'b', key: 'k/x' });
  expect([parseS3Uri('s3://b'), parseS3Uri('s3://b/')]).toEqual(Array(2).fill({ bucket: 'b', key: '' }));
  expect(bucketAndKey('s3://b/k')).toEqual({ Bucket: 'b', Key: 'k' });
  for (const wrong of ['s3://', 'b/k', 'http://b/k', 's3:///k'])
    expect(() => parseS3Uri(wrong)).toThrow('must be an S3 URI');
});

test.each([
  ['db', { service: 'secretsmanager', name: 'db' }],
  ['/team/db', { service: 'ssm', name: 'team/db' }],
  [
    'arn:aws:ssm:us-west-2:111122223333:parameter/team/db',
    { service: 'ssm', name: 'team/db', region: 'us-west-2', account: '111122223333' },
  ],
  [
    'arn:aws-cn:secretsmanager:cn-north-1:111122223333:secret:db-AbCdEf',
    { service: 'secretsmanager', name: 'db-AbCdEf', region: 'cn-north-1', account: '111122223333' },
  ],
])('the reference %s', (text, expected) => {
  expect(secretReference(text)).toEqual(expected);
});

test('prefixes of secrets lose their first slashes; sums are rounded to cents; columns are as wide as their widest cell', () => {
  expect([secretPrefix('//a/b/'), secretPrefix('a')]).toEqual(['a/b/', 'a']);
  expect([cents(1.005), cents(1.234), cents(2)]).toEqual([1, 1.23, 2]);
  expect(textTable(['a', 'bb'], [['xxx', 'y'], ['z']])).toBe('a    bb\nxxx  y\nz');
});
