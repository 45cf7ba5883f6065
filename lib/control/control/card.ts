import type { CardAnswer, CardRequest, Refusal, StatusAnswer } from '../../core/contracts/control';
import { cardFile, modelCard, modelFacts, registryCard } from '../../report/card/model-card';
import { assembleReport, type Read } from '../../report/read/assemble';
import type { ReadDeps } from './deps';
import { statusOf } from './reads/status';

/**
 * The model card that `slipway publish` writes beside the weights of a run. State, attempts and options come from the run table; timeline,
 * jobs and lineage come from the caller, who has the right to write any card anyway.
 */
export async function cardOfRun(deps: ReadDeps, team: string, request: CardRequest): Promise<CardAnswer | Refusal> {
  const status = await statusOf(deps, team, { runId: request.runId, timeline: true, configuration: true });
  return status.ok ? cardOf(deps, status, request) : status;
}

/** The same, for a run whose status has been read already. */
export function cardOf(
  deps: Pick<ReadDeps, 'environment' | 'region' | 'now'>,
  status: StatusAnswer,
  { weights, lines, jobs, lineage }: CardRequest,
): CardAnswer {
  const report = assembleReport({
    ...{ status, environment: deps.environment, region: deps.region, readAt: deps.now().toISOString() },
    ...{ lines: known(lines), jobs: known(jobs), checkpoints: {}, plan: {} },
  });
  const facts = modelFacts(report, lineage, status.configuration?.spec ?? {}, weights);
  return { ok: true, file: cardFile(weights), card: modelCard(facts), registryCard: registryCard(facts) };
}

const known = <T>(value: T | null): Read<T> => (value === null ? {} : { value });
