import { PutEventsCommand } from '@aws-sdk/client-eventbridge';
import { plainLine } from '../../../core/config/formats/plain-text';
import { EVENT_DETAIL_TYPE, EVENT_SOURCE } from '../../../core/contracts/launcher';
import type { RunRecord } from '../../../core/lifecycle/record';
import { describeError } from '../../shared/errors';
import type { ReconcileDeps } from '../deps';
import { MAX_TEXT } from './email';

/** Sends the state change of a run, if there is one, to the event bus. It is only a hint; if it is lost, status still shows the state. */
export async function announce(deps: ReconcileDeps, before: RunRecord, after: RunRecord): Promise<void> {
  if (before.state === after.state) return;
  try {
    await putEvent(deps, before, after);
  } catch (error) {
    const about = { runId: after.runId, state: after.state, previousState: before.state };
    deps.log('warn', 'an event was not sent', { ...about, error: describeError(error) });
  }
}

async function putEvent(deps: ReconcileDeps, before: RunRecord, after: RunRecord): Promise<void> {
  const detail = {
    runId: after.runId,
    team: after.team,
    environment: after.environment,
    state: after.state,
    previousState: before.state,
    reason: plainLine(after.reason, MAX_TEXT),
    attempt: after.attempt?.number ?? null,
    jobName: after.attempt?.jobName ?? null,
    committedStep: after.committed?.step ?? null,
  };
  const entry = {
    Source: EVENT_SOURCE,
    DetailType: EVENT_DETAIL_TYPE,
    EventBusName: deps.eventBusName,
    Detail: JSON.stringify(detail),
  };
  const { FailedEntryCount, Entries = [] } = await deps.events.send(new PutEventsCommand({ Entries: [entry] }));
  const { ErrorCode = 'no reason given' } = Entries[0] ?? {};
  if (FailedEntryCount) throw new Error(`the bus refused it: ${ErrorCode}`);
}
