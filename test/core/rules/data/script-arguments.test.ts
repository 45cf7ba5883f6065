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

const scriptOf = (
  options: (typeof option extends fc.Arbitrary<infer T> ? T : never)[],
  reads = 'args = parser.parse_args()',
) =>
  [
    'import argparse',
    'def main():',
    '    parser = argparse.ArgumentParser(description="trains (it)")',
    ...options.map(({ name, short, settings, separator }) => {
      const words = [...(short ? [`'${short}'`] : []), `"--${name}"`, ...settings];
      return `    parser.add_argument(${words.join(separator)}${separator.trimEnd()}\n    )`;
    }),
    `    ${reads}`,
    'if __name__ == "__main__":',
    '    main()',
  ].join('\n');

const shortNames = (options: { short: string | null }[]) => options.flatMap((one) => one.short ?? []);
const options = fc
  .uniqueArray(option, { selector: ({ name }) => name.replace('_', '-'), maxLength: 5 })
  .filter((all) => new Set(shortNames(all)).size === shortNames(all).length);

test('warns of exactly the arguments for which argparse ends the script', () => {
  const one = fc.tuple(
    options.map((all) => scriptOf(all)),
    given,
  ) as fc.Arbitrary<[string, Arguments]>;
  fc.assert(
    fc.property(fc.array(one, { maxLength: 60, size: 'max' }), (cases) => {
      const refused = refusedByArgparse(cases);
      expect(cases.filter(([script, words], i) => warns(script, words) !== refused[i])).toEqual([]);
    }),
    { numRuns: draws(8) },
  );
});

test('with parse_known_args, warns of these, and of other spellings of an option, which it ignores', () => {
  const one = fc.tuple(options, given) as fc.Arbitrary<[{ name: string }[], Arguments]>;
  fc.assert(
    fc.property(fc.array(one, { maxLength: 60, size: 'max' }), (drawn) => {
      const cases = drawn.map(([all, words]): [string, Arguments] => [
        scriptOf(all as Parameters<typeof scriptOf>[0], 'args, _ = parser.parse_known_args()'),
        words,
      ]);
      const refused = refusedByArgparse(cases);
      const expected = drawn.map(([all, words], i) => {
        const spelt = Object.keys(words).filter(
          (key) => words[key] !== false && !all.some(({ name }) => name.startsWith(key)),
        );
        return (
          refused[i] || spelt.some((key) => all.some(({ name }) => name.replace('-', '_') === key.replace('-', '_')))
        );
      });
      expect(cases.filter(([script, words], i) => warns(script, words) !== expected[i])).toEqual([]);
    }),
    { numRuns: draws(8) },
  );
});

const A = 'import argparse\nparser = argparse.ArgumentParser()\n';
const FUNCTION = 'import argparse\ndef made():\n    parser = argparse.ArgumentParser()\n    return parser\n';

test.each([
  ['parse_known_args', `${A}args, _ = parser.parse_known_args()`],
  ['parse_known_args and an option much like it', `${A}parser.add_argument("--epoch")\nparser.parse_known_args()`],
  ['options of a library', `${A}Trainer.add_args(parser)\nparser.parse_args()`],
  ['options of a library by keyword', `${A}add_more(parser=parser)\nparser.parse_args()`],
  [
    'options of a library in a group',
    `${A}group = parser.add_argument_group("a")\nlibrary.add(group)\nparser.parse_args()`,
  ],
  ['options of a library in a call', `${FUNCTION}args = library.add(made()).parse_args()`],
  ['options of a library under another name', `${FUNCTION}p = made()\np = library.add(p)\nargs = p.parse_args()`],
  ['a method that is passed on', `${A}library.register(parser.add_argument)\nparser.parse_args()`],
  ['a method under another name', `${A}add = parser.add_argument\nadd("--lr")\nparser.parse_args()`],
  ['a type of its own', `${A}parser.register("type", int, read)\nparser.parse_args()`],
  ['names made in a loop', `${A}for n in NAMES:\n    parser.add_argument(f"--{n}")\nparser.parse_args()`],
  ['an escape in a name', `${A}parser.add_argument("--a\\x62")\nparser.parse_args()`],
  ['subcommands', `${A}parser.add_subparsers()\nparser.parse_args()`],
  ['parents', 'import argparse\nparser = argparse.ArgumentParser(parents=[base])\nparser.parse_args()'],
  ['its own words', 'import argparse, sys\nparser = argparse.ArgumentParser()\nparser.parse_args(sys.argv[1:-1])'],
  ['two parsers', `${A}other = argparse.ArgumentParser()\nparser.parse_args()`],
  [
    'a class of its own',
    'import argparse\nclass ArgumentParser(argparse.ArgumentParser): ...\nparser = ArgumentParser()\nparser.parse_args()',
  ],
  [
    'a parser of simple_parsing',
    'from simple_parsing import ArgumentParser\nparser = ArgumentParser()\nparser.add_arguments(A, "a")\nparser.parse_args()',
  ],
  [
    'a parser of a dataclass',
    'from argparse_dataclass import ArgumentParser\nparser = ArgumentParser(A)\nparser.parse_args()',
  ],
  [
    'a parser of configargparse',
    'import configargparse as argparse\nparser = argparse.ArgumentParser()\nparser.parse_args()',
  ],
  [
    'dataclasses',
    'from transformers import HfArgumentParser\nparser = HfArgumentParser(Args)\nparser.parse_args_into_dataclasses()',
  ],
  [
    'an optional word',
    `${A}parser.add_argument("--epochs")\nparser.add_argument("files", nargs=argparse.ZERO_OR_MORE)\nparser.parse_args()`,
  ],
  ['choices in a variable', `${A}parser.add_argument("--epochs", type=int, choices=EPOCHS)\nparser.parse_args()`],
  [
    'more choices than are read',
    `${A}parser.add_argument("--epochs", choices=[${Array.from({ length: 200 }, (_, n) => `"model_${n}"`)}, "2"])\nparser.parse_args()`,
  ],
  ['flags of Hydra', '@hydra.main(config_path="conf")\ndef main(epochs): ...', { 'config-name': 'a', multirun: true }],
  ['no parser', 'print("trains")'],
])('does not judge the arguments of a script with %s', (_, script, given: Arguments = { epochs: 2 }) => {
  expect(warns(script, given)).toBe(false);
});

test('does not take the options of a program that a script imports for its own', () => {
  const program = `${A}parser.add_argument("--src", required=True)\ndef main():\n    args = parser.parse_args()`;
  const files: Record<string, string> = {
    'train.py': 'import tyro\nfrom convert import save\ntyro.cli(main)',
    'convert.py': program,
  };
  expect(pythonFacts('train.py', (name) => files[name]).options).toBeUndefined();
});

const JOINS = 'dist.init_process_group("nccl")\n';
const SPAWN = 'mp.spawn(main, nprocs=8)';
test.each([
  ['the local rank of a trainer', 'torch.cuda.set_device(training_args.local_rank)'],
  ['a local rank that it computes', 'torch.cuda.set_device(self.local_rank)'],
  [
    'ranks for a program without torchrun',
    `${JOINS}if dist.is_torchelastic_launched():\n    main(0)\nelse:\n    ${SPAWN}`,
  ],
  ['ranks that an option turns on', `${JOINS}if args.multiprocessing:\n    ${SPAWN}\nelse:\n    main(0)`],
  [
    'an address for one host',
    `if "SLURM_JOB_ID" not in os.environ:\n    os.environ["MASTER_ADDR"] = "localhost"\n${JOINS}`,
  ],
  ['variables under another name', `env = os.environ\nrank = env["RANK"]\n${JOINS}${SPAWN}`],
])('says nothing of a script with %s', (_, script) => {
  expect(pythonFacts('train.py', () => script).ownRanks).toBeUndefined();
});
