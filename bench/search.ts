// `npm run bench:search`: how fast `slipway plan --search` is, rules included, for the 70B run file on 64 ml.p5.48xlarge in its
// own library and in four: the first call of a process, and the best of five once warm.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { loadRun } from '../lib/core/config/load';
import { checkRun } from '../lib/core/rules';
import { searchRun } from '../lib/core/search/search-run';

const REGION = 'us-west-2';
const REPEATS = 5;
const FILE = path.join(__dirname, '../runs/builtin/llama3-70b-fsdp.yaml');
const SPACES = [undefined, ['fsdp', 'deepspeed', 'megatron', 'smp-v2']];

const { value: run } = loadRun(readFileSync(FILE, 'utf8'), ['compute.instanceCount=64']);
if (!run) throw new Error(`${FILE} is no valid run file`);

for (const libraries of SPACES) {
  const took: number[] = [];
  let considered = 0;
  for (let i = 0; i <= REPEATS; i++) {
    const began = performance.now();
    const found = searchRun(run, { region: REGION }, { libraries, check: (c) => checkRun(c, { region: REGION }) });
    took.push((performance.now() - began) / 1000);
    if (Array.isArray(found)) throw new Error(found.map(({ message }) => message).join('\n'));
    considered = found.considered;
  }
  const [first = 0, ...warm] = took;
  const best = Math.min(...warm);
  const rate = Math.round(considered / best).toLocaleString('en-US');
  const name = (libraries ?? [run.distribution.library]).join(', ').padEnd(36);
  console.log(
    `${name} ${considered.toLocaleString('en-US').padStart(7)} layouts  first ${first.toFixed(2)} s  warm ${best.toFixed(2)} s  ${rate} layouts/s`,
  );
}
