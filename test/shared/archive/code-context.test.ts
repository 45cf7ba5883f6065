import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import vm from 'node:vm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkRun } from '../../../lib/core/rules';
import { codeContext } from '../../../lib/shared/archive/code-context';
import { BASE, runOf } from '../../support/runs';

/** A run file in `project/runs` whose code lies in `code`, beside `project`. */
function besideProject(): { folder: string; runFile: string } {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-code-'));
  for (const name of ['project/runs', 'code']) mkdirSync(path.join(folder, name), { recursive: true });
  writeFileSync(path.join(folder, 'code/train.py'), '');
  return { folder, runFile: path.join(folder, 'project/runs/run.yaml') };
}

/** One fact about each file that has it. */
const facts = ({ codeFolder }: ReturnType<typeof codeContext>, fact: 'windowsLine' | 'secret') =>
  Object.fromEntries(
    codeFolder?.files.flatMap((file) => (file[fact] === undefined ? [] : [[file.name, file[fact]]])) ?? [],
  );

const run = (source: string) => runOf({ ...BASE, code: { source, entryPoint: 'train.py' } });

test('fails: code beside the folder of the run file where no Git repository holds both, and says how to make one', () => {
  const { folder, runFile } = besideProject();
  expect(codeContext(run('../../code'), runFile)).toEqual({
    codeProblem: `must be in the run file's folder (${folder}/project/runs), which is in no Git repository`,
    codeFix: 'run git init in the folder that holds both, or move the run file above the code',
  });
});

test('fails: code outside the repository of the run file', () => {
  const { folder, runFile } = besideProject();
  mkdirSync(path.join(folder, 'project/.git'));
  expect(codeContext(run('../../code'), runFile)).toEqual({
    codeProblem: `must be in the run file's Git repository (${folder}/project)`,
    codeFix: undefined,
  });
});

test('in a repository that holds both it is found, with the files below it', () => {
  const { folder, runFile } = besideProject();
  mkdirSync(path.join(folder, '.git'));
  const { codeFolder } = codeContext(run('../../code'), runFile);
  expect(codeFolder).toEqual({
    files: [{ name: 'train.py', bytes: 0, isExecutable: false }],
    problems: [],
    outside: [],
  });
});

test('finds the first line of a script that ends as on Windows, as the driver does', () => {
  const { folder, runFile } = besideProject();
  mkdirSync(path.join(folder, '.git'));
  const write = (name: string, text: string) => writeFileSync(path.join(folder, 'code', name), text, 'latin1');
  write('windows.sh', '#!/bin/bash\r\nset -e\r\n');
  write('mixed.sh', '#!/bin/bash\nset -e\r\n');
  write('unix.sh', '#!/bin/bash\nprintf "a\\r\\n"\n');
  write('installer.sh', '#!/bin/bash\nexit\n\0\r\n');
  write('tool', '#!/usr/bin/env python3\r\n');
  write('notes.txt', 'a\r\n');
  expect(facts(codeContext(run('../../code'), runFile), 'windowsLine')).toEqual({
    'mixed.sh': 2,
    tool: 1,
    'windows.sh': 1,
  });
});

test('finds keys and tokens by their format, not in what looks like one', () => {
  const { folder, runFile } = besideProject();
  mkdirSync(path.join(folder, '.git'));
  const write = (name: string, text: string) => writeFileSync(path.join(folder, 'code', name), text);
  write('key', '-----BEGIN OPENSSH PRIVATE KEY-----\n');
  write('a.py', `login("hf_${'0123456789'.repeat(4)}")`);
  write('credentials', `[default]\naws_secret_access_key = ${'a/B+'.repeat(10)}\n`);
  write(
    'docs.md',
    'AKIAIOSFODNN7EXAMPLE, aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY, hf_hub_download',
  );
  expect(facts(codeContext(run('../../code'), runFile), 'secret')).toEqual({
    'a.py': 'a token of Hugging Face',
    credentials: 'a secret key of AWS',
    key: 'a private key',
  });
});

test('fails: a code folder that is a link to a place outside the repository', () => {
  const { folder, runFile } = besideProject();
  mkdirSync(path.join(folder, 'project/.git'));
  symlinkSync('../code', path.join(folder, 'project/code'));
  expect(codeContext(run('../code'), runFile).codeProblem).toMatch(/^must be in the run file's Git repository/);
});

test('fails: a folder that is not there, and a file', () => {
  const { runFile } = besideProject();
  expect(codeContext(run('../nothing'), runFile).codeProblem).toMatch(/^must be a folder that exists/);
  expect(codeContext(run('../../code/train.py'), runFile).codeProblem).toBe('must be a folder, not a file');
});

test('code in S3 is not looked for here', () => {
  expect(codeContext(run('s3://bucket/code.tar.gz'), '/nowhere/run.yaml')).toEqual({});
});

test.each<[string, string | undefined]>([
  ['torchrun --nproc_per_node 8 train.py', 'torchrun for one host'],
  ['exec torchrun --nproc_per_node $SM_NUM_GPUS train.py', 'torchrun for one host'],
  ['cd src && /opt/venv/bin/python3.11 -m torch.distributed.run train.py', 'torchrun for one host'],
  ['python -m accelerate.commands.launch train.py', 'accelerate launch for one host'],
  ['accelerate launch train.py "$@"', 'accelerate launch for one host'],
  ['deepspeed --num_gpus 8 \\\n train.py', 'deepspeed for one host'],
  ['python -m deepspeed.launcher.runner train.py', 'deepspeed for one host'],
  ['torchrun --nnodes 2 train.py', undefined],
  ['torchrun \\\n  --node-rank 1 train.py', 'torchrun with rank 1 on each host'],
  ['torchrun --node-rank=$RANK train.py', undefined],
  ['torchrun --nnodes 1 --nproc_per_node $N train.py', 'torchrun for one host'],
  ['torchrun $OPTIONS train.py', undefined],
  ['  # torchrun train.py', undefined],
  ['python train.py --launcher=torchrun', undefined],
  ['ipython -m torch.distributed.run train.py', undefined],
])('%s is %s', (line, launcher) => {
  const { folder, runFile } = besideProject();
  mkdirSync(path.join(folder, '.git'));
  writeFileSync(path.join(folder, 'code/run.sh'), `#!/bin/bash\nset -e\n${line}\n`);
  const { codeFolder } = codeContext(run('../../code'), runFile);
  expect(codeFolder?.files.find(({ name }) => name === 'run.sh')?.oneHostLauncher).toBe(launcher);
});

/** Stops the check itself: a timeout of the test runner would wait until a regular expression comes back. */
function withoutHanging(check: () => void): void {
  Object.assign(globalThis, { check });
  new vm.Script('check()').runInThisContext({ timeout: 30_000 });
}

test('law: a script that gives each host the same rank is a finding, and one with other ranks or a rendezvous is none', () => {
  const launcher = fc.constantFrom(
    ['torchrun', '--nnodes 2 --node_rank'],
    ['torchrun', '--nnodes=2 --nproc-per-node $N \\\n --node-rank'],
    ['accelerate launch', '--num_machines 2 --machine_rank'],
    ['deepspeed', '--no_ssh --node_rank'],
  );
  const rank = fc.constantFrom('0', '1', '7', '$RANK', '${RANK:-0}');
  const last = fc.constantFrom('train.py', '--rdzv_endpoint=algo-1 train.py');
  fc.assert(
    fc.property(
      launcher,
      fc.array(rank, { maxLength: 3 }),
      fc.constantFrom('=', ' '),
      last,
      ([name, options], ranks, sign, end) => {
        const { folder, runFile } = besideProject();
        mkdirSync(path.join(folder, '.git'));
        const lines = ranks.map((one) => `exec ${name} ${options}${sign}${one} ${end}\n# ${name} ${options} 5 a.py`);
        writeFileSync(path.join(folder, 'code/run.sh'), ['set -e', ...lines, ''].join('\n'));
        const isSame = new Set(ranks).size === 1 && !ranks[0]?.startsWith('$') && !end.startsWith('--');
        const found = codeContext(run('../../code'), runFile).codeFolder?.files.find((file) => file.name === 'run.sh');
        expect(found?.oneHostLauncher).toBe(isSame ? `${name} with rank ${ranks[0]} on each host` : undefined);
      },
    ),
  );
});

test('any file is checked in the time that its length takes, whatever repeats in it', () => {
  const { folder, runFile } = besideProject();
  mkdirSync(path.join(folder, '.git'));
  const runs = ['run.sh', 'train.py'].map((entryPoint) =>
    runOf({ ...BASE, code: { source: '../../code', entryPoint, requirements: 'requirements.txt' } }),
  );
  const piece = fc.constantFrom(
    ...[' ', '#', '&', ';', '@', '-', '=', '[', '/', '.', 'a', '1', "'", '\r', '\\\n'],
    ...['python', ' -m ', 'torchrun', '$', '-r ', 'git+', 'nccl', '\u00EF', 'hf_', '>='],
    ...['\n', '(', ')', '"', ',', '.add_argument(', 'Config(', 'type=bool', 'output_dir='],
    ...['import ', 'from ', ' as ', '{', '"""', 'f"', 'bool(', 'class A:\n ', 'x: bool = ', '--node_rank '],
  );
  const pieces = (maxLength: number) => fc.array(piece, { maxLength });
  const middle = fc.oneof(fc.tuple(piece), fc.array(piece, { minLength: 2, maxLength: 3 }));
  fc.assert(
    fc.property(pieces(2), middle, pieces(2), fc.constantFrom(...runs), (first, repeated, last, own) => {
      const once = repeated.join('');
      const text = [...first, once.repeat(2 ** 18 / once.length), ...last].join('');
      for (const name of ['run.sh', 'requirements.txt', 'config.yaml', 'train.py'])
        writeFileSync(path.join(folder, 'code', name), text, 'latin1');
      withoutHanging(() => checkRun(own, codeContext(own, runFile)));
    }),
    { numRuns: 40, endOnFailure: true },
  );
});

test('law: the options and the folder of a script are found, however its calls are written, and nothing else is', () => {
  const parts = fc.record({
    name: fc.stringMatching(/^[a-z]{2,6}$/),
    type: fc.constantFrom('', 'bool', 'int', 'str2bool', 'lambda x: bool(x)'),
    isOn: fc.boolean(),
    order: fc.array(fc.nat(), { minLength: 5, maxLength: 5 }),
    space: fc.constantFrom(' ', '\n    ', '  # a comment, type=bool, (\n'),
    quote: fc.constantFrom('"', "'", '"""'),
    help: fc.constantFrom(
      '',
      'a switch (on or off)',
      'type bool',
      'one of (',
      ':)',
      ', type=bool, default=True, ',
      '# no',
      'a\\\\',
    ),
    extra: fc.constantFrom(
      'dest="x"',
      'metavar=str(f(g(1)))',
      'choices=[True, (1, 2)]',
      'required=False',
      'nargs=f"{n})"',
    ),
    decoy: fc.constantFrom(
      '',
      '# p.add_argument("--decoy", type=bool)',
      '"""\np.add_argument("--decoy", type=bool)\n"""',
    ),
  });
  const place = fc.constantFrom(
    'TrainingArguments("out"',
    'a.SFTConfig(lr=f(g(1)), output_dir="out"',
    "X(\n  # (\n  output_dir='out'",
  );
  const from = fc.constantFrom(
    ...['', 'from options import p', 'import os, options as o', 'from . import (  # one (\n  more,\n  options\n)'],
    ...['from .options import *', 'try:\n    import options\nexcept ImportError: pass'],
  );
  fc.assert(
    fc.property(
      fc.uniqueArray(parts, { selector: ({ name }) => name, maxLength: 5 }),
      place,
      from,
      (options, call, statement) => {
        const script = options.map(({ name, type, isOn, order, space, quote, help, extra, decoy }) => {
          const given = [
            ...(type ? [`type=${type}`] : []),
            `default=${isOn ? 'True' : 'False'}`,
            `help=${quote}${help}${quote}`,
            extra,
          ];
          const rest = given.map((one, i) => [order[i] ?? 0, one] as const).sort(([a], [b]) => a - b);
          const words = [`${quote}--${name}${quote}`, ...rest.map(([, one]) => one)];
          return `${decoy}\np.add_argument(${words.join(`,${space}`)}\n)`;
        });
        const { folder, runFile } = besideProject();
        mkdirSync(path.join(folder, '.git'));
        const text = `p = ArgumentParser()\n${script.join('\n')}\n`;
        const saving = `args = ${call}, **more)\n`;
        writeFileSync(path.join(folder, 'code/options.py'), text);
        writeFileSync(path.join(folder, 'code/train.py'), `${statement || text}\n${saving}`);
        const expected = options.map(({ name, type, isOn }) => {
          const off = type === 'bool' || (type === '' && isOn) ? 'never' : 'text';
          return [name, { off, isOn }];
        });
        const entry = codeContext(run('../../code'), runFile).codeFolder?.files.find(({ name }) => name === 'train.py');
        expect(entry?.switches ?? {}).toEqual(Object.fromEntries(expected));
        expect(entry?.savesTo).toBe(call.startsWith('X') ? undefined : 'out');
      },
    ),
  );
});
