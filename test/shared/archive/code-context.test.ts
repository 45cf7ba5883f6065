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
  ['torchrun --nproc_per_node 8 train.py', 'torchrun'],
  ['exec torchrun --nproc_per_node $SM_NUM_GPUS train.py', 'torchrun'],
  ['cd src && /opt/venv/bin/python3.11 -m torch.distributed.run train.py', 'torchrun'],
  ['python -m accelerate.commands.launch train.py', 'accelerate launch'],
  ['accelerate launch train.py "$@"', 'accelerate launch'],
  ['deepspeed --num_gpus 8 \\\n train.py', 'deepspeed'],
  ['python -m deepspeed.launcher.runner train.py', 'deepspeed'],
  ['torchrun --nnodes 2 train.py', undefined],
  ['torchrun \\\n  --node-rank 1 train.py', undefined],
  ['torchrun $OPTIONS train.py', undefined],
  ['  # torchrun train.py', undefined],
  ['python train.py --launcher=torchrun', undefined],
  ['ipython -m torch.distributed.run train.py', undefined],
])('%s starts ranks on one host with %s', (line, launcher) => {
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

test('any file is checked in the time that its length takes, whatever repeats in it', () => {
  const { folder, runFile } = besideProject();
  mkdirSync(path.join(folder, '.git'));
  const own = runOf({
    ...BASE,
    code: { source: '../../code', entryPoint: 'run.sh', requirements: 'requirements.txt' },
  });
  const piece = fc.constantFrom(
    ...[' ', '#', '&', ';', '@', '-', '=', '[', '/', '.', 'a', '1', "'", '\r', '\\\n'],
    ...['python', ' -m ', 'torchrun', '$', '-r ', 'git+', 'nccl', '\u00EF', 'hf_', '>='],
    ...['\n', '(', ')', '"', ',', '.add_argument(', 'Config(', 'type=bool', 'output_dir='],
  );
  const pieces = (maxLength: number) => fc.array(piece, { maxLength });
  const middle = fc.oneof(fc.tuple(piece), fc.array(piece, { minLength: 2, maxLength: 3 }));
  fc.assert(
    fc.property(pieces(2), middle, pieces(2), (first, repeated, last) => {
      const once = repeated.join('');
      const text = [...first, once.repeat(2 ** 18 / once.length), ...last].join('');
      for (const name of ['run.sh', 'requirements.txt', 'config.yaml', 'train.py'])
        writeFileSync(path.join(folder, 'code', name), text, 'latin1');
      withoutHanging(() => checkRun(own, codeContext(own, runFile)));
    }),
    { numRuns: 40, endOnFailure: true },
  );
});

test('law: the options of a parser with type=bool are found, however its calls are written', () => {
  const word = fc.stringMatching(/^[a-z]{2,6}$/);
  const parts = fc.record({
    name: word,
    type: fc.constantFrom('bool', 'int', 'str2bool', 'lambda x: bool(x)'),
    isOn: fc.boolean(),
    isFirst: fc.boolean(),
    space: fc.constantFrom(' ', '\n    '),
    quote: fc.constantFrom('"', "'"),
    help: fc.constantFrom('', 'a switch (on or off)', 'type bool'),
  });
  fc.assert(
    fc.property(fc.uniqueArray(parts, { selector: ({ name }) => name, maxLength: 5 }), (options) => {
      const script = options.map(({ name, type, isOn, isFirst, space, quote, help }) => {
        const given = [`type=${type}`, `default=${isOn ? 'True' : 'False'}`, `help=${quote}${help}${quote}`];
        const rest = (isFirst ? given : given.reverse()).join(`,${space}`);
        return `p.add_argument(${quote}--${name}${quote},${space}${rest})`;
      });
      const { folder, runFile } = besideProject();
      mkdirSync(path.join(folder, '.git'));
      writeFileSync(path.join(folder, 'code/train.py'), `p = ArgumentParser()\n${script.join('\n')}\n`);
      const bools = options.filter(({ type }) => type === 'bool').map(({ name, isOn }) => [name, isOn]);
      const { codeFolder } = codeContext(run('../../code'), runFile);
      expect(codeFolder?.files[0]?.boolOptions ?? {}).toEqual(Object.fromEntries(bools));
    }),
  );
});
