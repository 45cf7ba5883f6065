import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { admit } from '../../../lib/core/queue/admit';
import { choosePreemptions } from '../../../lib/core/queue/preempt';

const needs = z.record(z.string(), z.number());
const run = z.strictObject({ runId: z.string(), team: z.string(), needs });
const exampleSchema = z.strictObject({
  limits: needs,
  others: needs.default({}),
  shares: needs.default({}),
  used: z.record(z.string(), needs).default({}),
  /** `trainedHours`: preemptible. */
  running: z
    .array(
      run.extend({
        trainedHours: z.number().optional(),
        preemptedHoursAgo: z.number().optional(),
        isRequested: z.boolean().default(false),
        waitedHours: z.number().default(0),
        priority: z.int().default(0),
      }),
    )
    .default([]),
  waiting: z.array(run.extend({ waitedHours: z.number(), priority: z.int().default(0) })),
  starts: z.array(z.string()),
  waits: z.record(z.string(), z.string()),
  preempts: z.record(z.string(), z.string()).default({}),
});

const NOW = Date.UTC(2026, 10, 21);
const page = readFileSync(path.join(__dirname, '..', '..', '..', 'docs', 'queue.md'), 'utf8');
const examples = [...page.matchAll(/\n(.*)\n\n```json example\n([\s\S]*?)```/g)].map((m): [string, string] => [
  m[1] ?? '',
  m[2] ?? '',
]);

test('the page has its examples', () => {
  expect(examples.length).toBeGreaterThanOrEqual(6);
});

test.each(examples)('docs/queue.md: %s', (_, text) => {
  const example = exampleSchema.parse(JSON.parse(text));
  const instances = (of: Record<string, number>) => Object.values(of).reduce((sum, n) => sum + n, 0);
  const pools = Object.entries(example.limits).map(([name, limit]) => {
    return [name, { name, limit, usedByOthers: example.others[name] ?? 0 }];
  });
  const queued = ({ waitedHours, ...r }: (typeof example)['waiting'][number]) => ({
    ...r,
    instances: instances(r.needs),
    queuedAt: NOW - waitedHours * 3_600_000,
    after: [],
  });
  const input = {
    waiting: example.waiting.map(queued),
    running: example.running.map(({ runId, team, needs: of }) => ({
      runId,
      team,
      needs: of,
      instances: instances(of),
    })),
    pools: Object.fromEntries(pools),
    shares: example.shares,
    usage: { at: NOW, hours: example.used, held: {} },
    now: NOW,
  };
  const { admitted, waits } = admit(input);
  expect(admitted).toEqual(example.starts);
  expect(Object.fromEntries(waits.map((w) => [w.runId, w.why]))).toEqual(example.waits);
  const preemptible = example.running.flatMap((r) => {
    if (r.trainedHours === undefined) return [];
    const { trainedHours, preemptedHoursAgo: ago, isRequested, ...run } = r;
    const preemptedAt = ago === undefined ? undefined : NOW - ago * 3_600_000;
    return { run: queued(run), trainingSince: NOW - trainedHours * 3_600_000, preemptedAt, isRequested };
  });
  const preempts = choosePreemptions(input, preemptible).map((p) => [p.runId, p.for]);
  expect(Object.fromEntries(preempts)).toEqual(example.preempts);
});
