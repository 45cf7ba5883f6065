import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { flagArguments } from '../../../../lib/core/distribution/strategy';
import { checkRun } from '../../../../lib/core/rules';
import { pythonFacts } from '../../../../lib/shared/archive/python-script';
import { draws } from '../../../support/draws';
import { PYTHON } from '../../../support/python';
import { BASE, runOf } from '../../../support/runs';

type Arguments = Record<string, boolean | number | string | (number | string)[]>;

/** Whether the rule warns of a run with these arguments. */
function warns(script: string, given: Arguments): boolean {
  const run = runOf({ ...BASE, code: { source: './src', entryPoint: 'train.py', arguments: given } });
  const facts = pythonFacts('train.py', (name) => (name === 'train.py' ? script : undefined));
  const file = { name: 'train.py', bytes: script.length, isExecutable: false, ...facts };
  const issues = checkRun(run, { codeFolder: { files: [file], problems: [] } });
  return issues.some(({ rule }) => rule === 'code/refused-arguments');
}

/** Runs scripts with their words in one process of Python; whether each ended with an error. */
const PLAY = `
import contextlib, io, json, sys
ended = []
for script, words in json.load(sys.stdin):
    sys.argv = ["train.py", *words]
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            exec(compile(script, "train.py", "exec"), {"__name__": "__main__"})
        ended.append(False)
    except SystemExit as error:
        ended.append(bool(error.code))
print(json.dumps(ended))
`;
const refusedByArgparse = (cases: [script: string, given: Arguments][]): boolean[] =>
  JSON.parse(
    execFileSync(PYTHON, ['-c', PLAY], {
      input: JSON.stringify(cases.map(([script, given]) => [script, flagArguments(given)])),
      encoding: 'utf8',
    }),
  );

const NAMES = ['lr', 'learning-rate', 'learning_rate', 'epochs', 'epoch-size', 'batch', 'bf16', 'data'];
const SETTINGS = [
  ['type=int', 'default=3'],
  ['type=float', 'help=\'rate (of, "learning")\''],
  ['type=int', 'required=True'],
  ["choices=['adam', 'sgd']", 'default="adam"'],
  ['choices=("a",)', 'dest="other"'],
  ['type=str', "choices=['adam', 'a']"],
  ['type=int', 'choices=[1, 2, 4]'],
  ['type=float', 'choices=(0.5, 2)'],
  ["action='store_true'"],
  ['action="store_false"', 'dest="no"'],
  ['action=argparse.BooleanOptionalAction', 'default=True'],
  ["nargs='*'", 'help="any"'],
  ["nargs='?'", 'const=1'],
  ['type=lambda text: text', 'metavar="x"'],
  ['action="append"'],
  ['action="count"'],
];

const option = fc.record({
  name: fc.constantFrom(...NAMES),
  short: fc.option(fc.constantFrom('-x', '-y', '-z')),
  settings: fc.constantFrom(...SETTINGS),
  separator: fc.constantFrom(', ', ',\n    ', ',  # a comment, "with", commas\n    '),
});
const value = fc.oneof(
  fc.boolean(),
  fc.constantFrom<number | string | (number | string)[]>(
    2,
    0.5,
    1e-5,
    1e21,
    'adam',
    'a',
    'True',
    '1_0',
    ' 7 ',
    'inf',
    '',
    [1, 2],
    ['a', 'x'],
  ),
);
const given = fc.dictionary(fc.constantFrom(...NAMES, 'l', 'epoch', 'no-bf16', 'x', 'optim'), value, { maxKeys: 3 });

const scriptOf = (options: (typeof option extends fc.Arbitrary<infer T> ? T : never)[]) =>
  [
    'import argparse',
    'def main():',
    '    parser = argparse.ArgumentParser(description="trains (it)")',
    ...options.map(({ name, short, settings, separator }) => {
      const words = [...(short ? [`'${short}'`] : []), `"--${name}"`, ...settings];
      return `    parser.add_argument(${words.join(separator)}${separator.trimEnd()}\n    )`;
    }),
    '    args = parser.parse_args()',
    'if __name__ == "__main__":',
    '    main()',
  ].join('\n');

test('warns of exactly the arguments for which argparse ends the script', () => {
  const unique = { selector: ({ name }: { name: string }) => name.replace('_', '-') };
  const short = (options: { short: string | null }[]) => options.flatMap((one) => one.short ?? []);
  const options = fc
    .uniqueArray(option, { ...unique, maxLength: 5 })
    .filter((all) => new Set(short(all)).size === short(all).length);
  const one = fc.tuple(options.map(scriptOf), given) as fc.Arbitrary<[string, Arguments]>;
  fc.assert(
    fc.property(fc.array(one, { maxLength: 60, size: 'max' }), (cases) => {
      const refused = refusedByArgparse(cases);
      expect(cases.filter(([script, words], i) => warns(script, words) !== refused[i])).toEqual([]);
    }),
    { numRuns: draws(8) },
  );
});

test.each([
  ['parse_known_args', 'import argparse\nparser = argparse.ArgumentParser()\nargs, _ = parser.parse_known_args()'],
  [
    'a parser of another library',
    'import argparse\nparser = argparse.ArgumentParser()\nTrainer.add_args(parser)\nparser.parse_args()',
  ],
  [
    'names made in a loop',
    'import argparse\nparser = argparse.ArgumentParser()\nfor n in NAMES:\n    parser.add_argument(f"--{n}")\nparser.parse_args()',
  ],
  ['subcommands', 'import argparse\nparser = argparse.ArgumentParser()\nparser.add_subparsers()\nparser.parse_args()'],
  ['parents', 'import argparse\nparser = argparse.ArgumentParser(parents=[base])\nparser.parse_args()'],
  ['its own words', 'import argparse, sys\nparser = argparse.ArgumentParser()\nparser.parse_args(sys.argv[1:-1])'],
  [
    'two parsers',
    'import argparse\nparser = argparse.ArgumentParser()\nother = argparse.ArgumentParser()\nparser.parse_args()',
  ],
  [
    'dataclasses',
    'from transformers import HfArgumentParser\nparser = HfArgumentParser(Args)\nparser.parse_args_into_dataclasses()',
  ],
  [
    'choices in a variable',
    'import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument("--epochs", type=int, choices=EPOCHS)\nparser.parse_args()',
  ],
  ['no parser', 'print("trains")'],
])('does not judge the arguments of a script with %s', (_, script) => {
  expect(warns(script, { epochs: 2 })).toBe(false);
});
