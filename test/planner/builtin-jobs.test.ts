import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { jobFile } from '../../lib/job/job-file';
import { layoutOfRun } from '../../lib/planner/layout-of-run';
import { shardTraffic } from '../../lib/planner/shard-traffic';
import { loadRun } from '../../lib/spec/load';
import { worldSize } from '../../lib/spec/resolve-run';
import { planOf } from '../support/runs';

const ROOT = path.join(__dirname, '../..');
const FIXTURE = path.join(ROOT, 'test/fixtures/builtin-jobs.json');

/** Each shipped run file of the built-in trainer on GPUs: its job.json, its ranks, and what the planner counts for one block and step. */
function builtinJobs() {
  return readdirSync(path.join(ROOT, 'runs')).flatMap((file) => {
    const run = loadRun(readFileSync(path.join(ROOT, 'runs', file), 'utf8')).value;
    if (run?.code.builtin !== 'builtin') return [];
    const planned = layoutOfRun(run);
    if (Array.isArray(planned)) return [];
    return [{ file, ranks: worldSize(run), job: jobFile(planOf(run)), traffic: shardTraffic(planned.layout) }];
  });
}

test('the fixture of the fake fleet is what run files and planner say: run with UPDATE_FIXTURES=1 to write it', () => {
  const text = `${JSON.stringify(builtinJobs(), null, 1)}\n`;
  if (process.env.UPDATE_FIXTURES) writeFileSync(FIXTURE, text);
  expect(builtinJobs().length).toBeGreaterThanOrEqual(3);
  expect(readFileSync(FIXTURE, 'utf8')).toBe(text);
});
