import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { runCli } from '../support/run-cli';

test('simulate --html shows runs, decisions and each notice once', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-simulation-'));
  try {
    const file = path.join(folder, 'page.html');
    const { code } = await runCli('simulate', 'test/scenarios/capacity.yaml', '--html', file);
    expect(code).toBe(0);
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
