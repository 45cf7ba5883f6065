import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { QuotaStore } from './quotas/quota-store';
import type { IncreaseRequests } from './quotas/service-quotas';
import type { SageMaker } from './sagemaker/sagemaker';

/** The parts of our services that are kept across a stop, in the order of the file. */
interface Kept {
  jobs: ReturnType<SageMaker['snapshot']>;
  quotas: ReturnType<QuotaStore['snapshot']>;
  increases: ReturnType<IncreaseRequests['snapshot']>;
}

interface Services {
  sagemaker: SageMaker;
  quotas: QuotaStore;
  increases: IncreaseRequests;
}

const fileOf = (stateDir: string) => path.join(stateDir, 'services.json');

/** Writes the state of our services at a clean stop, as MiniStack does with its own. */
export function saveServices(stateDir: string, { sagemaker, quotas, increases }: Services): void {
  const kept: Kept = { jobs: sagemaker.snapshot(), quotas: quotas.snapshot(), increases: increases.snapshot() };
  mkdirSync(stateDir, { recursive: true });
  writeFileSync(fileOf(stateDir), JSON.stringify(kept));
}

/** Restores the state if there is any. Jobs that were running have failed since. */
export function restoreServices(stateDir: string, { sagemaker, quotas, increases }: Services): void {
  if (!existsSync(fileOf(stateDir))) return;
  const kept = JSON.parse(readFileSync(fileOf(stateDir), 'utf8')) as Kept;
  sagemaker.restore(kept.jobs);
  quotas.restore(kept.quotas);
  increases.restore(kept.increases);
}

/** Deletes the state of an earlier sandbox. */
export function forgetServices(stateDir: string): void {
  rmSync(fileOf(stateDir), { force: true });
}
