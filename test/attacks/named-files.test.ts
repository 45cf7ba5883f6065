// Files of the machine that run files and environment files of somebody else name.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { environmentNames } from '../../lib/cli/assist/account-names';
import { environmentFileOf } from '../../lib/cli/environment/environment-file';
import { namedText } from '../../lib/shared/archive/code-files';
import { runCli } from '../support/run-cli';

const SECRET = 'aws_secret_access_key = wJalrXUtnFEMI';
let folder: string;
const at = (...names: string[]) => path.join(folder, ...names);

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-named-'));
  for (const name of ['clone/.git', 'clone/runs', 'clone/environments']) mkdirSync(at(name), { recursive: true });
  writeFileSync(at('credentials'), `[default]\n${SECRET}\n`);
  writeFileSync(at('outside.json'), JSON.stringify({ model_type: SECRET }));
  writeFileSync(at('clone/.env'), SECRET);
  writeFileSync(at('clone/large.json'), `{"model_type": "${'x'.repeat(1_000_001)}"}`);
  symlinkSync(at('credentials'), at('clone/link'));
  symlinkSync(folder, at('clone/folder'));
  execFileSync('mkfifo', [at('clone/fifo')]);
});

/** A place as it is named from `runs` or `environments` of the clone. */
const PLACES: [string, string][] = [
  ['above the repository', '../../credentials'],
  ['outside of it in JSON', '../../outside.json'],
  ['behind a link', '../link'],
  ['in a folder behind a link', '../folder/credentials'],
  ['that is a folder', '..'],
  ['that is a pipe', '../fifo'],
  ['that is too large', '../large.json'],
  ['without an end', '/dev/zero'],
  ['of the process', '/proc/self/environ'],
];
const printed = async (...words: string[]) => {
  const { code, stdout, stderr } = await runCli(...words);
  return { code, text: `${stdout}${stderr}` };
};

describe('a file', () => {
  test.each(PLACES)('fails: %s, named by model.config', async (_, name) => {
    const text = { name: 'r', code: { source: '.' }, compute: { instanceType: 'ml.m5.xlarge', instanceCount: 1 } };
    writeFileSync(at('clone/runs/run.yaml'), JSON.stringify({ ...text, model: { config: name } }));
    const found = await printed('validate', at('clone/runs/run.yaml'));
    expect([found.code, found.text.includes(SECRET)]).toEqual([1, false]);
    expect(found.text).toContain(
      `model.config: must be a config.json of at most 1 MB in the repository of the run file, got ${name};`,
    );
  });

  test.each(PLACES)('fails: %s, named as a run of an environment', async (_, name) => {
    const text = { name: 'e', regions: { 'us-west-2': {} }, teams: { nlp: {} }, runs: [{ file: name }] };
    writeFileSync(at('clone/environments/e.yaml'), JSON.stringify(text));
    const found = await printed('validate', at('clone/environments/e.yaml'));
    expect(found.text.includes(SECRET)).toBe(false);
    expect(found.text).toContain('runs[0].file: must be a file of at most 1 MB in the repository of this one, got ');
  });

  test('that is a pipe among the environments of a folder keeps no command waiting', () => {
    execFileSync('mkfifo', [at('clone/environments/pipe.yaml')]);
    expect(environmentNames(at('clone/environments'))).toEqual(expect.not.arrayContaining(['pipe']));
    expect(environmentFileOf('other', at('clone'))).toBeUndefined();
  });

  test('of the CDK app in the working folder is read without a repository, and above it none', async () => {
    const app = mkdtempSync(path.join(tmpdir(), 'slipway-app-'));
    for (const name of ['runs', 'environments']) mkdirSync(path.join(app, name));
    writeFileSync(path.join(app, 'runs/run.yaml'), 'name: r');
    const [by, before] = [path.join(app, 'environments/e.yaml'), process.cwd()];
    const texts = () => ['../runs/run.yaml', '../../x'].map((name) => namedText(by, name));
    writeFileSync(path.join(app, '../x'), SECRET);
    process.chdir(app);
    try {
      expect(texts()).toEqual([undefined, undefined]);
      writeFileSync('cdk.json', '{}');
      expect(texts()).toEqual(['name: r', undefined]);
    } finally {
      process.chdir(before);
    }
  });

  test('fails: a lock file that is a link out of the repository', async () => {
    writeFileSync(at('clone/environments/e.yaml'), JSON.stringify({ name: 'e', regions: { 'us-west-2': {} } }));
    symlinkSync(at('credentials'), at('clone/environments/e.lock.yaml'));
    expect((await printed('validate', at('clone/environments/e.yaml'))).text.includes(SECRET)).toBe(false);
  });

  test('that is no JSON is not printed, although it is in the repository', async () => {
    const text = { name: 'r', model: { config: '../.env' }, code: { source: '.' } };
    writeFileSync(at('clone/runs/run.yaml'), JSON.stringify(text));
    const found = await printed('validate', at('clone/runs/run.yaml'));
    expect([found.code, found.text.includes(SECRET)]).toEqual([1, false]);
  });
});
