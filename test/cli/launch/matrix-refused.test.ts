import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test, vi } from 'vitest';
import { Refusal } from '../../../lib/cli/exit';
import { issue } from '../../../lib/core/config/issue';
import { runCli } from '../../support/run-cli';
import { DESCRIPTOR } from '../../support/runs';

const submit = vi.hoisted(() => vi.fn());
vi.mock('../../../lib/cli/launch/submit', () => ({ submit, confirmCost: async () => false }));
vi.mock('../../../lib/cli/environment/preflight', () => ({ preflightRun: async () => undefined }));

test('a refusal amid a series names the runs that go on, also in the document of --json', async () => {
  const spent = issue('guardrails/team-budget', 'error', 'teams.nlp.budgetUsdPerMonth', { must: 'x', fix: 'y' });
  submit.mockResolvedValueOnce({ runId: 'first-1', state: 'queued', queuePosition: 1 });
  submit.mockRejectedValueOnce(new Refusal([spent]));
  const environment = path.join(mkdtempSync(path.join(tmpdir(), 'slipway-matrix-')), 'environment.json');
  writeFileSync(environment, JSON.stringify(DESCRIPTOR));
  const file = path.join(__dirname, '../../../runs/builtin/starter.yaml');
  const words = ['--matrix', 'training.seed=1,2', '--environment', environment, '--yes', '--json'];
  const { code, stdout, stderr } = await runCli('launch', file, ...words);
  expect(code).toBe(1);
  expect(stderr).toContain('first-1: queued (training.seed=1)');
  expect(JSON.parse(stdout)).toMatchObject({
    ok: false,
    runs: [{ runId: 'first-1', label: 'training.seed=1' }],
    issues: [{ rule: 'guardrails/team-budget' }],
  });
});
