import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { loadEnvironment, loadRun } from '../../../lib/core/config/load';
import { applyOverrides } from '../../../lib/core/config/reading/overrides';
import { parseYaml } from '../../../lib/core/config/reading/yaml-file';
import { controlRequestSchema } from '../../../lib/core/contracts/control-requests';
import { checkRun } from '../../../lib/core/rules';

const messages = (issues: { message: string }[]) => issues.map(({ message }) => message);
const keys = (count: number) => Array.from({ length: count }, (_, i) => `k${i.toString(36)}`);

describe('text above a limit is refused before it is parsed', () => {
  test('a run file of more than 200,000 characters, and an environment file of more than 1,000,000', () => {
    // Neither is YAML, which only its parser would find out.
    expect(messages(loadRun('{'.repeat(200_001)).issues)).toEqual([
      'file: must have at most 200000 characters, got 200001 characters; remove what is not read from it, or move long values to files of the code',
    ]);
    expect(messages(loadEnvironment('{'.repeat(1_000_001)).issues)[0]).toContain('at most 1000000 characters');
    expect(messages(parseYaml('x: 1', 3).issues)[0]).toContain('must have at most 3 characters, got 4 characters');
  });

  test.each([
    ['lists', 65, '[', ']'],
    ['sections', 65, '{a: ', '}'],
    ['lists that the parser has no stack for', 20_000, '[', ']'],
    ['sections that it has no stack for', 20_000, '{', '}'],
    ['sections that do not end', 20_000, '{', ''],
    ['list entries in one line', 20_000, '- ', ''],
    ['complex keys', 20_000, '? ', ''],
    ['brackets that are closed in texts alone', 2000, '["]",', ''],
  ])('too many levels of %s', (_what, levels, begin, end) => {
    const text = `${begin.repeat(levels)}1${end.repeat(levels)}`;
    const refusal = ['file: must be YAML with at most 64 levels of sections and lists; use fewer levels'];
    expect(messages(parseYaml(text).issues)).toEqual(refusal);
  });

  test.each([
    ['[', ']'],
    ['{a: ', '}'],
    ['- ', ''],
  ])('but not 64 levels of %s', (begin, end) => {
    expect(messages(parseYaml(`${begin.repeat(64)}1${end.repeat(64)}`).issues)).toEqual([]);
  });

  test('and not brackets in a text', () => {
    const template = `${'{{ '.repeat(500)}${'['.repeat(500)}`;
    expect(parseYaml(`a: ${JSON.stringify(template)}\nb: |\n  ${template}\n`).data).toEqual({
      a: template,
      b: `${template}\n`,
    });
  });

  test('no more than 100 errors of one text are returned', () => {
    expect(parseYaml('%a\n'.repeat(2000)).issues).toHaveLength(100);
  });
});

describe('keys', () => {
  test('of a section are compared in a time that grows with their number', () => {
    // Comparing all pairs of so many keys takes minutes, and the test runs into its limit.
    const { data, issues } = parseYaml(`{${keys(130_000).join(',')}}`);
    expect(issues).toEqual([]);
    expect(Object.keys(data as object)).toHaveLength(130_000);
  });

  test.each([
    ['a: 1\nb: 2\na: 3', 3],
    ['x:\n  1: a\n  "1": b', 3],
  ])('fails: %j has a key twice', (text, line) => {
    expect(messages(parseYaml(text).issues)[0]).toContain(`Map keys must be unique (line ${line}, column`);
  });
});

describe('--set', () => {
  const set = (...overrides: string[]) => messages(applyOverrides({ data: [] }, overrides).issues);

  test.each([
    [
      'data[1000].channel=x',
      '--set: must name a position of a list up to 999, got data[1000].channel=x; correct the number',
    ],
    [
      'data[4294967295].channel=x',
      '--set: must name a position of a list up to 999, got data[4294967295].channel=x; correct the number',
    ],
    [
      `tags.a=${'x'.repeat(4096)}`,
      '--set: must have at most 4096 characters, got 4103 characters; write it in the file',
    ],
  ])('fails: %s', (override, message) => {
    expect(set(override)).toEqual([message]);
  });

  test('fails: more than 100, more than 64 levels of a path, and a value that ends below them', () => {
    expect(set(...Array.from({ length: 101 }, () => 'a=1'))).toEqual([
      '--set: must be given at most 100 times, got 101; write it in the file',
    ]);
    expect(
      set(
        Array.from({ length: 65 }, () => 'a')
          .join('.')
          .concat('=1'),
      )[0],
    ).toContain('at most 64 levels');
    expect(set(`a=${'['.repeat(64)}${']'.repeat(64)}`)[0]).toContain('must name a path of the file and a value');
    expect(applyOverrides({}, [`a=${'['.repeat(4000)}`])).toEqual({ data: { a: '['.repeat(4000) }, issues: [] });
  });

  test('accepts what is within them', () => {
    expect(set('data[999].channel=x', ...Array.from({ length: 99 }, (_, i) => `tags.t${i}=x`))).toEqual([]);
  });
});

/** Paths of texts and lists without an upper bound in a JSON schema. */
function unbounded(schema: Record<string, unknown>, path = ''): string[] {
  const below = (value: unknown, name: string) => unbounded(value as Record<string, unknown>, `${path}${name}`);
  const named = Object.entries((schema.properties ?? {}) as object).flatMap(([name, one]) => below(one, `.${name}`));
  const forms = [...((schema.anyOf ?? schema.oneOf ?? []) as object[])].flatMap((one) => below(one, ''));
  const items = schema.items === undefined ? [] : below(schema.items, '[]');
  const isOpenText =
    schema.type === 'string' &&
    [schema.maxLength, schema.enum, schema.const].every((bound) => bound === undefined) &&
    (schema.pattern === undefined || /[*+]|\{\d+,\}/.test(String(schema.pattern)));
  const isOpenList = schema.type === 'array' && schema.maxItems === undefined;
  return [...(isOpenText || isOpenList ? [path] : []), ...named, ...forms, ...items];
}

test('every text and list of a payload of control has a maximum', () => {
  expect(unbounded({ properties: { a: { type: 'string' }, b: { items: { type: 'array' } } } })).toEqual(['.a', '.b[]']);
  const schema = z.toJSONSchema(controlRequestSchema, { io: 'input', unrepresentable: 'any' });
  expect(unbounded(schema as Record<string, unknown>)).toEqual([]);
});

describe('60,000 characters in one option', () => {
  const run = { name: 'a', code: { source: 'src', entryPoint: 't.py' }, compute: { instanceCount: 1 } };
  test.each(['a', ' ', '(', '{', '/', '\n', '$', '\u001b]', 'a-', '--x='])('of %j are read and checked', (part) => {
    const long = part.repeat(60_000 / part.length);
    const options = [
      { hyperparameters: { x: long } },
      { hyperparameters: { [long]: 1 } },
      { environmentVariables: { X: long } },
      { code: { ...run.code, arguments: { x: long } } },
      { code: { source: long, entryPoint: long } },
      { compute: { instanceType: long, instanceCount: 1 } },
      { data: [{ channel: 't', s3: long }] },
      { image: { kind: 'uri', uri: long } },
      { model: { config: long } },
      { checkpoints: { startFrom: long, s3: long, localPath: long, committedMarker: long } },
      { distribution: { launcher: 'mpi', mpiOptions: long } },
      { secrets: { A: long }, tags: { x: long }, after: [long] },
      { [long]: 1 },
    ];
    const found = options.map((more) => {
      const { value, partial, issues } = loadRun(JSON.stringify({ ...run, ...more }));
      const spec = value ?? partial?.versions[0];
      return [...issues, ...(spec ? checkRun(spec) : [])];
    });
    expect(found.every((issues) => issues.length > 0)).toBe(true);
    expect(found.flat().filter(({ message }) => message.length > 10_000)).toEqual([]);
  });
});
