import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { runCli } from '../support/run-cli';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-links-'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

/** What is said of a file with a wrong instance type and an unknown option. */
async function said(): Promise<string> {
  const file = path.join(folder, 'run.yaml');
  writeFileSync(file, 'name: a\ncode: { source: builtin }\ncompute: { instanceType: ml.p5.48xlarg }\ncolour: red\n');
  return (await runCli('validate', file)).stderr;
}

test('with SLIPWAY_DOCS_URL a finding of a rule names its page', async () => {
  vi.stubEnv('SLIPWAY_DOCS_URL', 'https://docs.example.com/slipway/');
  const text = await said();
  expect(text).toContain('https://docs.example.com/slipway/rules/compute.html#instance-type');
  expect(text).toContain('colour');
  expect(text).not.toContain('rules/schema/');
});

test('without it nothing is added', async () => {
  vi.stubEnv('SLIPWAY_DOCS_URL', '');
  expect(await said()).not.toContain('http');
});
