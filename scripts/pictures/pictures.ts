import path from 'node:path';
import { main } from '../../lib/cli/main';
import type { RunPlan } from '../../lib/core/planner/run/plan-run';
import { ARCHITECTURE } from './architecture';
import { svgOf } from './canvas';
import { DECISION } from './decision';
import { NETWORKS } from './networks';
import { notification } from './notification';
import { costByCause, memoryBar } from './plan-charts';
import { queuePicture } from './queue';
import { RESUME } from './resume';
import { ROLES } from './roles';
import { RUN_STATES } from './run-states';
import { simulated } from './simulated';

const RUN_FILE = 'runs/builtin/llama3-8b-fsdp.yaml';

/** What `slipway plan FILE --json` prints. */
async function planOf(file: string): Promise<RunPlan> {
  const out: string[] = [];
  const streams = { out: (text: string) => out.push(text), err: (text: string) => out.push(text) };
  const code = await main(['node', 'slipway', 'plan', path.join(__dirname, '../..', file), '--json'], streams);
  if (code !== 0) throw new Error(`docs:pictures: slipway plan ${file} must succeed, got: ${out.join('\n')}`);
  return JSON.parse(out.join('\n')) as RunPlan;
}

/** Every picture: the name of its file, and its content. */
export async function pictures(): Promise<[file: string, content: string][]> {
  const plan = await planOf(RUN_FILE);
  const team = await simulated();
  const all = [
    ARCHITECTURE,
    RUN_STATES,
    RESUME,
    memoryBar(RUN_FILE, plan),
    costByCause(RUN_FILE, plan),
    ROLES,
    NETWORKS,
    DECISION,
    queuePicture(team),
    notification(team),
  ];
  return all.map((picture) => [`${picture.name}.svg`, svgOf(picture)]);
}
