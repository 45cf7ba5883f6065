import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { worldSize } from '../../lib/core/config/resolve-run';
import type { RunSpec } from '../../lib/core/config/run-spec';
import { jobFile } from '../../lib/core/job/job-file';
import { planOf } from './runs';

/** The trainer's own verdict on a run: its layout, or why it refuses the job. */
export interface TrainerVerdict {
  layout?: Record<'shard' | 'replicate' | 'tensor' | 'context' | 'expert', number>;
  /** Whether it compiles the model on the run's instances. */
  compiles?: boolean;
  issues?: string[];
}

/** Hands the job.json of each run to the trainer's settings and layout code. Needs python3, not PyTorch. */
export function trainerVerdicts(runs: readonly RunSpec[]): TrainerVerdict[] {
  const cases = runs.map((run) => ({ job: jobFile(planOf(run)), ranks: worldSize(run) }));
  const script = path.join(__dirname, 'trainer_layout.py');
  return JSON.parse(
    execFileSync('python3', [script], { input: JSON.stringify(cases), encoding: 'utf8', maxBuffer: 1e8 }),
  );
}
