// Options that are text keep the characters of the file and of --set, also where YAML reads a number or a boolean.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loadEnvironment, loadRun } from '../../../lib/core/config/load';
import { draws } from '../../support/draws';

const RUN = 'name: a\ncode: { source: ./src }\ncompute: { instanceType: ml.m5.large }\n';
const ENVIRONMENT = 'name: lab\n';

/** Scalars without quotes: numbers of all notations, booleans, and what only looks like them. */
const scalars = fc.oneof(
  fc.stringMatching(/^[-+]?[0-9]{1,20}(\.[0-9]{0,4})?([eE][-+]?[0-9]{1,3})?$/),
  fc.stringMatching(/^(0x[0-9a-fA-F]{1,9}|0o[0-7]{1,9}|[-+]?\.[0-9]{1,4})$/),
  fc.stringMatching(/^[0-9]{1,3}(\.[0-9]{1,2}){2}$/),
  fc.constantFrom('true', 'True', 'TRUE', 'false', 'FALSE', 'yes', 'off', '.inf', '-.Inf', '.NaN', '1_000', '1:30'),
  fc.constantFrom('012345678901', '1234567e8', '4930e21', '0x1F', '2.10', '007', '+1', '-0', '2026-11-30', '1e3'),
);

/** Each way to write the value of an option, and what is read of it. */
const inRun = (text: string, set: string[] = []) => {
  const { value, issues } = loadRun(RUN + text, set);
  return [value?.environmentVariables.A, value?.tags.A, value?.image.version, ...issues.map((i) => i.message)];
};
const inEnvironment = (text: string, set: string[] = []) => {
  const { value, issues } = loadEnvironment(ENVIRONMENT + text, set);
  return [value?.tags?.A, value?.regions['us-west-2']?.tags?.A, ...issues.map((i) => i.message)];
};

test('passes on what is written when the option is text', () => {
  fc.assert(
    fc.property(scalars, (word) => {
      const inFile = `environmentVariables: { A: ${word} }\ntags:\n  A: ${word}\nimage: { kind: dlc, version: ${word} }\n`;
      const one = [`environmentVariables.A=${word}`, `tags.A= ${word} # a comment`, `image.version=${word}`];
      const sections = [`environmentVariables={A: ${word}}`, `tags={"A": ${word}}`, `image={version: ${word}}`];
      for (const read of [inRun(inFile), inRun('', one), inRun('', sections)]) expect(read).toEqual([word, word, word]);
      const both = `tags: { A: ${word} }\nregions: { us-west-2: { tags: { A: ${word} } } }\n`;
      const set = [`tags.A=${word}`, `regions.us-west-2={ tags: { A: ${word} } }`];
      for (const read of [inEnvironment(both), inEnvironment('regions: {}\n', set)]) expect(read).toEqual([word, word]);
    }),
    { numRuns: draws(200) },
  );
});

test('names keys as they are written', () => {
  fc.assert(
    fc.property(scalars, (word) => {
      for (const [text, set] of [[`tags: { ${word}: x }\n`, []] as const, ['', [`tags={ ${word}: x }`]] as const]) {
        const { value, issues } = loadRun(RUN + text, set);
        expect([value?.tags, issues]).toEqual([{ [word]: 'x' }, []]);
      }
    }),
    { numRuns: draws(100) },
  );
});

describe('an alias', () => {
  test('is text where an option is text, and a number elsewhere', () => {
    const { value } = loadRun(
      `${RUN}tags: &t { A: &a 2.10, B: x }\nhyperparameters: { a: *a, t: *t }\nenvironmentVariables: *t\n`,
    );
    expect([value?.tags, value?.environmentVariables]).toEqual(Array(2).fill({ A: '2.10', B: 'x' }));
    expect(value?.hyperparameters).toEqual({ a: 2.1, t: { A: 2.1, B: 'x' } });
    const size = loadRun(`${RUN}limits: { maxAttempts: &n 0x10 }\nenvironmentVariables: { A: *n }\n`).value;
    expect([size?.limits.maxAttempts, size?.environmentVariables.A]).toEqual([16, '0x10']);
  });
});

test.each(['null', '~', 'Null', ''])('fails: %j in place of a text', (word) => {
  const { issues } = loadRun(`${RUN}environmentVariables: { A: ${word} }\ntags: { A: ${word} }\n`);
  const must = 'must be text, a number, true or false, got nothing; write it in one of these forms';
  expect(issues.map((i) => i.message)).toEqual([`tags.A: ${must}`, `environmentVariables.A: ${must}`]);
});

test('fails: a whole number in --set that would lose digits', () => {
  const { issues } = loadRun(RUN, [
    'hyperparameters.seeds=[1, 12345678901234567]',
    'code.arguments.n=12345678901234567',
  ]);
  const got =
    'must be a whole number that 64-bit floats hold, as all up to 9007199254740991 are, got 12345678901234567';
  expect(issues.map((i) => i.message)).toEqual([
    `hyperparameters.seeds[1]: ${got}; write it as text, in quotes`,
    `code.arguments.n: ${got}; write it as text, in quotes`,
  ]);
});

test('numbers stay numbers where the schema does not ask for text', () => {
  const set = ['code.arguments={version: 2.10}', 'hyperparameters.version=2.10', 'limits.maxCostUsd=1e3'];
  const run = loadRun(RUN, set).value;
  expect([run?.code.arguments, run?.hyperparameters, run?.limits.maxCostUsd]).toEqual([
    { version: 2.1 },
    { version: 2.1 },
    1000,
  ]);
});
