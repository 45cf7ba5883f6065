// `npm run bench:control [-- RUNS...]`: what the control plane costs and how fast it decides, by simulation: calls of each observation,
// ticks, and the bill of a month.
import { type BillLine, monthlyBill } from './control-bill';
import { playLoad } from './control-load';

const COUNTS = process.argv.slice(2).map(Number);

async function main(): Promise<void> {
  for (const runs of COUNTS.length > 0 ? COUNTS : [100, 500, 1000]) {
    const { result, steady, observationsPerRunTick, cpuSeconds, observations } = await playLoad(runs);
    const broken = result.invariants.filter(({ holds }) => !holds).map(({ name }) => name);
    const { ticks, startLatencySeconds: start } = result;
    process.stdout.write(
      [
        `${runs} live runs: ${Math.round(observations / cpuSeconds)} observations a second of CPU`,
        `  a tick, from the schedule to its last message: p50 ${ticks.p50Seconds} s, p99 ${ticks.p99Seconds} s`,
        `  a start, from room to the accepted create: p50 ${start.p50} s, p99 ${start.p99} s`,
        `  ${result.deadLetters} dead letters, broken invariants: ${broken.join(', ') || 'none'}`,
        `  ${sumOf(steady).toFixed(2).padStart(8)} calls a run and tick, of which`,
        ...Object.entries(steady).map(([call, count]) => `  ${count.toFixed(3).padStart(8)} ${call} a run and tick`),
        ...monthlyBill(runs, steady, observationsPerRunTick).map(billText),
        '',
      ].join('\n'),
    );
  }
}

const sumOf = (calls: Readonly<Record<string, number>>): number =>
  Object.values(calls).reduce((sum, count) => sum + count, 0);

const billText = ({ what, usd }: BillLine): string => `  ${usd.toFixed(2).padStart(8)} USD a month: ${what}`;

main().catch((error: Error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exitCode = 1;
});
