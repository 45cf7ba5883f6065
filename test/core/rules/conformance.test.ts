// Cases of test/fixtures/conformance/rules (README there): what `slipway validate` must say about a run file.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Issue, IssueLevel } from '../../../lib/core/config/issue';
import { runCli } from '../../support/run-cli';

interface Case {
  id: string;
  file: string;
  kind: 'valid' | 'invalid';
  environment: string;
  region: string;
  exit: number[];
  level?: 'error' | 'warning' | 'flagged';
  mistakes?: { paths: string[]; messages: string[] }[];
}

const ROOT = path.join(__dirname, '../../fixtures/conformance/rules');
const parsed = JSON.parse(readFileSync(path.join(ROOT, 'cases.json'), 'utf8')) as Case[] | { cases: Case[] };
const CASES = Array.isArray(parsed) ? parsed : parsed.cases;
const LEVELS: Record<string, IssueLevel[]> = { error: ['error'], warning: ['warning'], flagged: ['error', 'warning'] };

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-rules-'));
  cpSync(path.join(ROOT, 'src'), path.join(folder, 'src'), { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true }));

const plain = (at: string) =>
  at
    .replace(/\[(\w+)\]/g, '.$1')
    .replaceAll('/', '.')
    .replace(/^\.|\.$/g, '');
function pathMatches(want: string, at: string): boolean {
  if (want.startsWith('=')) return plain(at) === plain(want.slice(1));
  return plain(at) === plain(want) || plain(at).startsWith(`${plain(want)}.`);
}

test.each(CASES.map((c) => [c.id, c] as const))('%s', async (_id, c) => {
  const file = path.join(folder, `${c.id}.yaml`);
  const environment = path.join(folder, `${c.id}.json`);
  cpSync(path.join(ROOT, c.file.startsWith('cases/') ? c.file : `cases/${c.file}`), file);
  const descriptor = readFileSync(path.join(ROOT, `environments/${c.environment}.json`), 'utf8');
  writeFileSync(environment, descriptor.replaceAll('us-west-2', c.region));
  const result = await runCli('validate', file, '--json', '--environment', environment, '--region', c.region);
  expect(c.exit, result.stdout).toContain(result.code);
  const { issues } = JSON.parse(result.stdout) as { issues: Issue[] };
  const errors = issues.filter((i) => i.level === 'error');
  if (c.kind === 'valid' || c.level === 'warning') expect(errors).toEqual([]);
  for (const mistake of c.mistakes ?? []) {
    const answers = issues.filter(
      (i) =>
        LEVELS[c.level ?? 'error']?.includes(i.level) &&
        mistake.paths.some((want) => pathMatches(want, i.path)) &&
        mistake.messages.some((m) => `${i.message} ${i.rule} ${i.path}`.toLowerCase().includes(m.toLowerCase())),
    );
    expect(answers, JSON.stringify(issues)).not.toEqual([]);
  }
});
