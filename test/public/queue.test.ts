// Reports about the queues of other schedulers, tried on ours: README.md and queue.md have the table.
import { expect, test } from 'vitest';
import { admit, type QueueInput } from '../../lib/core/queue/admit';
import type { PoolNeeds, QueuedRun } from '../../lib/core/queue/order';
import { choosePreemptions, type PreemptibleRun } from '../../lib/core/queue/preempt';

const NOW = Date.UTC(2026, 11, 1);
const HOUR = 3_600_000;

interface Run {
  id: string;
  needs: PoolNeeds;
  team?: string;
  priority?: number;
  waitedHours?: number;
  /** Of a running one. @default true */
  preemptible?: boolean;
}
interface Queue {
  limits: Record<string, number>;
  others?: Record<string, number>;
  running?: Run[];
  waiting: Run[];
  used?: Record<string, PoolNeeds>;
}

const queued = ({ id, needs, team = 'a', priority = 0, waitedHours = 2 }: Run): QueuedRun => ({
  runId: id,
  team,
  instances: Object.values(needs)[0] ?? 0,
  needs,
  priority,
  queuedAt: NOW - waitedHours * HOUR,
  after: [],
});

/** Who starts now, and who is asked to leave for whom. */
function pass({ limits, others = {}, running = [], waiting, used }: Queue) {
  const input: QueueInput = {
    waiting: waiting.map(queued),
    running: running.map(queued),
    pools: Object.fromEntries(
      Object.entries(limits).map(([name, limit]) => [name, { name, limit, usedByOthers: others[name] ?? 0 }]),
    ),
    shares: {},
    usage: used && { hours: used, held: {}, at: NOW },
    now: NOW,
  };
  const preemptible: PreemptibleRun[] = running
    .filter((run) => run.preemptible !== false)
    .map((run) => ({ run: queued(run), trainingSince: NOW - 9 * HOUR, isRequested: false }));
  const leaves = choosePreemptions(input, preemptible).map(({ runId, for: other }) => `${runId} for ${other}`);
  return { starts: admit(input).admitted, leaves };
}

test.each<[string, Queue, { starts?: string[]; leaves?: string[] }]>([
  [
    'kubernetes-sigs/kueue#6814: a run above the limit that came first keeps none of its priority from making room',
    {
      limits: { p5: 8 },
      running: [{ id: 'old', needs: { p5: 8 }, team: 'b' }],
      waiting: [
        { id: 'impossible', needs: { p5: 20 }, priority: 5, waitedHours: 9 },
        { id: 'urgent', needs: { p5: 8 }, priority: 5 },
      ],
      used: { b: { p5: 100 } },
    },
    { starts: [], leaves: ['old for urgent'] },
  ],
  [
    'kubernetes-sigs/kueue#6929: nor does it send runs away in rounds',
    {
      limits: { p5: 3 },
      running: [
        { id: 'job-1', needs: { p5: 1 }, team: 'b' },
        { id: 'job-2', needs: { p5: 1 }, team: 'b' },
      ],
      waiting: [
        { id: 'job-3', needs: { p5: 4 }, waitedHours: 9 },
        { id: 'job-4', needs: { p5: 3 } },
      ],
      used: { b: { p5: 100 } },
    },
    { starts: [], leaves: ['job-1 for job-4', 'job-2 for job-4'] },
  ],
  [
    'kubernetes-sigs/kueue#7301: a run that waits for others to leave does not hold a later one of higher priority',
    {
      limits: { p5: 3 },
      running: [{ id: 'job-1', needs: { p5: 2 }, team: 'b' }],
      waiting: [
        { id: 'low', needs: { p5: 3 }, waitedHours: 9 },
        { id: 'high', needs: { p5: 1 }, priority: 10, waitedHours: 0 },
      ],
      used: { b: { p5: 100 } },
    },
    { starts: ['high'] },
  ],
  [
    'kubernetes-retired/kube-batch#376: a run of the same rank sends nobody away',
    { limits: { p5: 8 }, running: [{ id: 'first', needs: { p5: 8 } }], waiting: [{ id: 'second', needs: { p5: 8 } }] },
    { starts: [], leaves: [] },
  ],
  [
    'kubernetes-retired/kube-batch#446: nobody leaves for a run that would still not fit, and others use what is free',
    {
      limits: { p5: 8 },
      running: [
        { id: 'fixed', needs: { p5: 3 }, preemptible: false },
        { id: 'low', needs: { p5: 3 } },
      ],
      waiting: [
        { id: 'high', needs: { p5: 8 }, priority: 5, waitedHours: 0.5 },
        { id: 'small', needs: { p5: 2 }, waitedHours: 0.2 },
      ],
    },
    { starts: ['small'], leaves: [] },
  ],
  [
    'volcano-sh/volcano#1464: nobody leaves for a run that another limit holds back',
    {
      limits: { p5: 8, all: 8 },
      others: { all: 4 },
      running: [{ id: 'low', needs: { p5: 4, all: 4 } }],
      waiting: [{ id: 'high', needs: { p5: 8, all: 8 }, priority: 5 }],
    },
    { starts: [], leaves: [] },
  ],
  [
    'volcano-sh/volcano#1772: a limit of ours makes room as one of the service does',
    {
      limits: { p5: 100, all: 4 },
      running: [{ id: 'low', needs: { p5: 4, all: 4 } }],
      waiting: [{ id: 'high', needs: { p5: 4, all: 4 }, priority: 5 }],
    },
    { starts: [], leaves: ['low for high'] },
  ],
  [
    'volcano-sh/volcano#2772: a large run leaves for a small one of higher priority',
    {
      limits: { p5: 8 },
      running: [{ id: 'low', needs: { p5: 8 } }],
      waiting: [{ id: 'high', needs: { p5: 4 }, priority: 5 }],
    },
    { starts: [], leaves: ['low for high'] },
  ],
  [
    'volcano-sh/volcano#2547: room that is free counts with the room that is made',
    {
      limits: { p5: 3 },
      running: [{ id: 'low', needs: { p5: 2 } }],
      waiting: [{ id: 'high', needs: { p5: 3 }, priority: 5 }],
    },
    { starts: [], leaves: ['low for high'] },
  ],
  [
    'kai-scheduler/KAI-Scheduler#1969: small runs do not take each instance that a large one waits for',
    {
      limits: { p5: 8 },
      running: [{ id: 'x', needs: { p5: 6 }, preemptible: false }],
      waiting: [
        { id: 'large', needs: { p5: 8 } },
        { id: 'small', needs: { p5: 1 }, team: 'b', waitedHours: 1 },
      ],
      used: { a: { p5: 10 }, b: { p5: 30 } },
    },
    { starts: [] },
  ],
  [
    'flux-framework/flux-sched#670: nothing is kept for a run that needs what others use',
    {
      limits: { p5: 8 },
      others: { p5: 4 },
      waiting: [
        { id: 'large', needs: { p5: 8 }, waitedHours: 50 },
        { id: 'small', needs: { p5: 4 }, waitedHours: 0 },
      ],
    },
    { starts: ['small'] },
  ],
])('%s', (_, queue, outcome) => {
  expect(pass(queue)).toMatchObject(outcome);
});
