// Every YAML block of the documentation is a run file, an environment file or a scenario that is accepted, or a part of one that is.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { environmentFileSchema } from '../../lib/core/config/environment-file';
import { runFileSchema } from '../../lib/core/config/run-file';
import { loadScenario } from '../../tools/simulation/scenario/load';
import { type Block, blocksOf, pages, textOf } from '../support/pages';
import { runCli } from '../support/run-cli';

const RUN = { name: 'a', code: { source: 'builtin' }, compute: { instanceType: 'ml.p5.48xlarge' } };
/** The run that examples of environment files name. */
const PLAIN_RUN = { ...RUN, code: { source: '../src' } };
const ENVIRONMENT = { name: 'a', regions: { 'us-west-2': {} } };

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-snippets-'));
  mkdirSync(path.join(folder, 'runs/sagemaker'), { recursive: true });
  mkdirSync(path.join(folder, 'src'));
  mkdirSync(path.join(folder, '.git'));
  writeFileSync(path.join(folder, 'src/train.py'), '');
  writeFileSync(path.join(folder, 'runs/sagemaker/llama2-13b.yaml'), JSON.stringify(PLAIN_RUN));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Errors of a whole file, as `slipway validate` finds them. */
async function errorsOfFile(text: string): Promise<string[]> {
  const file = path.join(folder, 'runs/snippet.yaml');
  writeFileSync(file, text);
  const { stdout } = await runCli('validate', file, '--json');
  const { issues } = JSON.parse(stdout) as { issues: { level: string; rule: string; message: string }[] };
  return issues.filter(({ level }) => level === 'error').map(({ rule, message }) => `${rule}: ${message}`);
}

/** Whether the sections of `part` are sections of a run file or of an environment file. */
const isPart = (part: object): boolean =>
  runFileSchema.safeParse({ ...RUN, ...part }).success ||
  environmentFileSchema.safeParse({ ...ENVIRONMENT, ...part }).success;

async function problemsOf({ text }: Block): Promise<string[]> {
  const data = parse(text) as Record<string, unknown> | null;
  if (data === null) return [];
  const has = (...keys: string[]) => keys.every((key) => key in data);
  if (has('name', 'code', 'compute') || has('name', 'regions')) return errorsOfFile(text);
  if (has('environment', 'runs', 'until')) return loadScenario(text, textOf).issues.map(({ message }) => message);
  return isPart(data) ? [] : ['neither a part of a run file nor of an environment file'];
}

const BLOCKS = pages()
  .flatMap(blocksOf)
  .filter(({ language, reason }) => ['yaml', 'yml'].includes(language) && reason === undefined);

test.each(BLOCKS.map((block) => [`${block.page}:${block.line}`, block] as const))('%s', async (_, block) => {
  expect(await problemsOf(block)).toEqual([]);
});
