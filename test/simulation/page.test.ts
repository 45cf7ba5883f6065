import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { simulate } from '../../tools/simulation/command/simulate';

const silent = { out: () => undefined, err: () => undefined };

test('simulate --html shows runs, decisions and each notice once', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-simulation-'));
  try {
    const file = path.join(folder, 'page.html');
    expect(await simulate('test/scenarios/capacity.yaml', { html: file }, silent)).toBe(0);
    const text = readFileSync(file, 'utf8');
    const cells = (row: string) =>
      [...row.matchAll(/<t[dh][^>]*>(.*?)<\/t[dh]>/gs)].map(([, cell = '']) => cell.replace(/<[^>]+>/g, ''));
    const rows = [...text.matchAll(/<tr[^>]*>(.*?)<\/tr>/gs)].map(([, row = '']) => cells(row));
    const decisions = rows.filter((row) => row.length === 4 && /^[a-z]+(-[a-z]+)*$/.test(row[2] ?? ''));
    const notices = decisions.filter(([, , what]) => what === 'notice').map((row) => row.join(' | '));
    expect(notices.length).toBeGreaterThan(2);
    expect(new Set(notices).size).toBe(notices.length);
    expect(decisions.map(([, , what]) => what)).toEqual(expect.arrayContaining(['run-admitted', 'job-created']));
    for (const run of ['waits', 'gives-up', 'chooses', 'patient']) expect(text).toContain(run);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test.each([
  ['a run file', 'name: a\ncompute: { instanceType: ml.p5.48xlarge }\n'],
  ['an environment file', 'name: lab\nregions: { us-west-2: {} }\nteams: { nlp: {} }\n'],
])('%s is no scenario, which is said once', async (kind, text) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-simulation-'));
  try {
    const file = path.join(folder, 'none.yaml');
    writeFileSync(file, text);
    const message = `${file}: must be a scenario, got ${kind}; write one whose runs: name it (docs/simulate.md)`;
    await expect(simulate(file, {}, silent)).rejects.toThrow(message);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a scenario with mistakes is told of each of them', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-simulation-'));
  const lines: string[] = [];
  try {
    const file = path.join(folder, 'scenario.yaml');
    writeFileSync(file, 'environment: {}\nlimits: {}\nrun: []\n');
    expect(await simulate(file, {}, { ...silent, err: (line) => lines.push(line) })).toBe(1);
    expect(lines.join('\n')).toContain('schema: must be 1');
    expect(lines.join('\n')).toContain('run: must be a known option');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
