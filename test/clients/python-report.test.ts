// The script in the pages of the Python client draws the same page as the command line.
import path from 'node:path';
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { assembleReport, type RunSources } from '../../lib/report/read/assemble';
import { renderRunReport } from '../../lib/report/render-run-report';
import { drawnByScript } from '../support/drawn-by-script';

const step = (n: number) => ({
  at: new Date(Date.UTC(2026, 10, 21, 12, n)).toISOString(),
  attempt: 1,
  message: `slipway ${JSON.stringify({ event: 'step', step: n, loss: 3 / n, tokensPerSecondPerGpu: 1000 + n })}`,
});

const SOURCES: RunSources = {
  status: {
    runId: 'pretrain-261121120000',
    name: 'pretrain',
    team: 'nlp',
    state: 'completed',
    reason: 'ended </script> & more',
    attempts: [
      {
        trainingJobName: 'research-pretrain-261121120000-a001',
        status: 'Completed',
        secondaryStatus: 'Completed',
        firstStep: 1,
        lastStep: 30,
        reason: '',
        startedAt: '2026-11-21T12:00:00.000Z',
        endedAt: '2026-11-21T12:40:00.000Z',
      },
    ],
    committedStep: 30,
    step: 30,
    goodput: 0.9,
    spendUsd: 12,
    timeline: [{ at: '2026-11-21T12:00:00.000Z', what: 'run-intended', text: 'start asked', evidence: {} }],
  },
  environment: 'research',
  region: 'us-west-2',
  readAt: '2026-11-21T13:00:00.000Z',
  lines: { value: Array.from({ length: 30 }, (_, i) => step(i + 1)) },
  checkpoints: { value: [] },
  jobs: { why: 'not permitted' },
  plan: {},
};

test('the page is the one that slipway report --html writes', async () => {
  const { outputFiles } = await build({
    entryPoints: [path.join(__dirname, '../../scripts/python-report.ts')],
    bundle: true,
    write: false,
    format: 'iife',
    platform: 'browser',
    target: 'es2022',
    minify: true,
  });
  const data = JSON.stringify(SOURCES).replaceAll('<', '\\u003c');
  const page = `<html><body><script id="slipway-sources" type="application/json">${data}</script>\n<script>${outputFiles[0]?.text}</script>\n</body></html>`;
  const drawn = drawnByScript(page);
  expect(drawn).toContain('ended &lt;/script&gt; &amp; more');
  // The ids inside drawings are numbered by process.
  const plain = (text: string) => text.replace(/zr\d+/g, 'zr');
  expect(plain(drawn)).toBe(plain(renderRunReport(assembleReport(SOURCES))));
});
