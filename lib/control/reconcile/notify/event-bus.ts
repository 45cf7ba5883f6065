import { PutEventsCommand } from '@aws-sdk/client-eventbridge';
import { plainLine } from '../../../core/config/formats/plain-text';
import { EVENT_DETAIL_TYPE, EVENT_SOURCE } from '../../../core/contracts/launcher';
import type { RunRecord } from '../../../core/lifecycle/record';
import type { ReconcileDeps } from '../deps';
import { MAX_TEXT } from './email';
import type { Notifier } from './notify';

/** Publishes state changes on the event bus. An event is only a hint; if it is lost, status still shows the state. */
export const eventBusNotifier: Notifier = {
  ifRefused: { level: 'warn', text: 'an event was not sent' },
  deliveries: (deps, news) => (news.about === 'state' ? [() => putEvent(deps, news.before, news.after)] : []),
};

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
