/**
 * Injects faults into a deployed environment of the sandbox and checks what must be seen: `npm run -s faults -- [--json]
 * [--only 2,3]`. Faults go in through the sandbox's fault plan (an HTTP call), its services and its processes; nothing calls `decide`.
 */
import { parseArgs } from 'node:util';
import { CASES } from './cases';
import type { FaultCase, Seen } from './fault-case';
import { World } from './world';

interface Result {
  n: number;
  name: string;
  ok: boolean;
  injected: string;
  seen: string[];
  detail: string;
}

/** As many runs at once as two cores carry. */
const AT_ONCE = 3;

async function runCase(world: World, { n, name, injected, run }: FaultCase): Promise<Result> {
  const seen: Seen = { lines: [] };
  try {
    await run(world, seen);
    return { n, name, ok: true, injected, seen: seen.lines, detail: '' };
  } catch (error) {
    return { n, name, ok: false, injected, seen: seen.lines, detail: (error as Error).message.slice(0, 1000) };
  }
}

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { json: { type: 'boolean' }, only: { type: 'string' } } });
  const only = values.only?.split(',').map(Number);
  const wanted = CASES.filter((c) => only?.includes(c.n) ?? true);
  const beside = wanted.filter((c) => !c.alone);
  const alone = wanted.filter((c) => c.alone);
  const print = (text: string) => process.stderr.write(`${text}\n`);
  const world = await World.open(print);
  const results: Result[] = [];
  const work = async (waiting: FaultCase[]) => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const result = await runCase(world, next);
      results.push(result);
      print(`${result.ok ? 'ok  ' : 'FAIL'} ${result.n} ${result.name}${result.ok ? '' : `: ${result.detail}`}`);
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, () => work(beside)));
    await work(alone);
  } finally {
    await world.close();
  }
  const faults = results.sort((a, b) => a.n - b.n || (a.name < b.name ? -1 : 1));
  const failed = faults.filter((f) => !f.ok).length;
  if (values.json) console.log(JSON.stringify({ faults }, null, 1));
  print(`${faults.length - failed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: Error) => {
    process.stderr.write(`faults: ${error.message}\n`);
    process.exitCode = 3;
  },
);
