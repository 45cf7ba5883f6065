/**
 * Expected goodput by discrete-event simulation with the real `decide`: `npm run -s bench:goodput -- [--json] [--constants FILE]
 * [--events FILE]`. Prints Slipway beside what most teams have today, under the same failures. Exit code 1 when a target is missed.
 */
import { createWriteStream } from 'node:fs';
import { checked, command, readJson, readOptions } from './command-line';
import { ceiling } from './goodput/ceiling';
import { type Constants, constantsSchema, RATES, type Rate } from './goodput/constants';
import { failuresOf } from './goodput/failures';
import { CAUSES, type Cause, type Log, type LogLine, type Policy, type RunResult } from './goodput/result';
import { SlipwaySimulation, spareHosts } from './goodput/slipway';
import { simulateToday } from './goodput/today';

const USAGE = `npm run -s bench:goodput -- [--json] [--constants FILE] [--events FILE]
  --constants FILE  any of the names in bench/goodput/constants.ts, as JSON
  --events FILE     writes every simulated event there, one JSON object a line
  for example: npm run -s bench:goodput -- --json --events events.jsonl`;

interface Row {
  policy: Policy;
  rate: Rate;
  nodes: number;
  /** Mean over the seeds: seconds of kept steps over seconds since the first create. */
  goodput: number;
  /** Mean number of new attempts and restarts in place. */
  restarts: number;
  /** Hosts that are paid beside the nodes. */
  spares: number;
  /** Hours of all hosts, the spare ones too, that did not go into kept steps. */
  wastedNodeHours: number;
  /** Mean number of times that a person had to resume the run. */
  personNeeded: number;
  /** Of the seconds since the first create, percent by cause. */
  lostPercent?: Record<Cause, number>;
}

const TARGETS: readonly { rate: Rate; nodes: number; least: number }[] = [
  { rate: 'llama3', nodes: 64, least: 0.99 },
  { rate: 'llama3', nodes: 512, least: 0.965 },
  { rate: 'llama3', nodes: 1250, least: 0.975 },
  { rate: 'rsc1-job', nodes: 64, least: 0.98 },
  { rate: 'rsc1-job', nodes: 512, least: 0.95 },
  { rate: 'rsc1-job', nodes: 1250, least: 0.95 },
];

function simulate(
  constants: Constants,
  policy: Policy,
  rate: Rate,
  nodes: number,
  write: (line: LogLine) => void,
): Row {
  const results: RunResult[] = [];
  for (let seed = 1; seed <= constants.seeds; seed++) {
    const failures = failuresOf(constants, rate, nodes, seed);
    const log: Log = (at, event, detail = {}) =>
      write({ policy, rate, nodes, seed, at: Math.round(at), event, detail });
    results.push(
      policy === 'today'
        ? simulateToday(constants, failures, log)
        : new SlipwaySimulation(constants, failures, nodes, log).run(),
    );
  }
  const mean = (of: (r: RunResult) => number) => results.reduce((sum, r) => sum + of(r), 0) / results.length;
  const spares = policy === 'today' ? 0 : spareHosts(constants, nodes);
  const wastedSeconds = mean((r) => (nodes + spares) * r.wallSeconds - nodes * r.productiveSeconds);
  return {
    policy,
    rate,
    nodes,
    goodput: round(
      mean((r) => r.productiveSeconds / r.wallSeconds),
      4,
    ),
    restarts: round(
      mean((r) => r.restarts),
      1,
    ),
    spares,
    wastedNodeHours: round(wastedSeconds / 3600, 0),
    personNeeded: round(
      mean((r) => r.personNeeded),
      2,
    ),
    ...(policy === 'slipway' && { lostPercent: lostPercent(results) }),
  };
}

function lostPercent(results: readonly RunResult[]): Record<Cause, number> {
  const wall = results.reduce((sum, r) => sum + r.wallSeconds, 0);
  const of = (cause: Cause) => results.reduce((sum, r) => sum + (r.seconds?.[cause] ?? 0), 0);
  return Object.fromEntries(CAUSES.map((c) => [c, round((100 * of(c)) / wall, 3)])) as Record<Cause, number>;
}

const round = (value: number, digits: number): number => Number(value.toFixed(digits));

function main(): number {
  const values = readOptions(USAGE, {
    json: { type: 'boolean' },
    constants: { type: 'string' },
    events: { type: 'string' },
  });
  const given = values.constants ? readJson('--constants', values.constants) : {};
  const constants = checked('--constants', constantsSchema, given);
  const events = values.events ? createWriteStream(values.events) : undefined;
  const write = (line: LogLine) => void events?.write(`${JSON.stringify(line)}\n`);
  const rows = RATES.flatMap((rate) =>
    constants.nodes.flatMap((nodes) =>
      (['slipway', 'today'] as const).map((policy) => simulate(constants, policy, rate, nodes, write)),
    ),
  );
  events?.end();
  const targets = TARGETS.flatMap((target) => {
    const row = rows.find((r) => r.policy === 'slipway' && r.rate === target.rate && r.nodes === target.nodes);
    if (!row) return [];
    const atBest = (spares: boolean) => round(ceiling(constants, target.rate, target.nodes, spares), 4);
    const met = row.goodput >= target.least;
    return [{ ...target, goodput: row.goodput, met, ceilingWithoutSpares: atBest(false), ceiling: atBest(true) }];
  });
  print(values.json ?? false, rows, targets, constants);
  return targets.every((t) => t.met) ? 0 : 1;
}

function print(asJson: boolean, rows: readonly Row[], targets: readonly object[], constants: Constants): void {
  if (asJson) {
    console.log(JSON.stringify({ rows, targets, constants }, null, 1));
    return;
  }
  console.table(rows.map(({ lostPercent: _lost, ...row }) => row));
  for (const { rate, nodes, lostPercent: lost } of rows)
    if (lost) console.log(`${rate}, ${nodes} nodes, percent lost:`, lost);
  console.table(targets);
}

command(main);
