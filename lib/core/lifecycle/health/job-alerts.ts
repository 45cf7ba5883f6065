import { projectedUsd } from '../accounting/spend';
import { notice } from '../action';
import type { Attempt, EpochMs, Notice, RunRecord } from '../record';

/** A run below this share of its own usual speed is reported. */
const SLOW_SHARE = 0.7;
/** Hosts of one attempt about which notices of one kind are sent: their names come from the job. */
const MAX_HOSTS = 16;

/**
 * Alerts about a job that makes progress but not as it should. They never stop a job: whether half the speed is worth a restart is a
 * person's decision. Each is raised once per attempt; alerts about a slow or replaced host are raised once per host.
 */
export function jobAlerts(record: RunRecord, attempt: Attempt, now: EpochMs): Notice[] {
  const vitals = attempt.progress?.vitals;
  if (!vitals) return [];
  const { stepsPerHour: speed, usualStepsPerHour: usual, slowHost, lossAlert } = vitals;
  const about = attempt.jobName;
  const notices: Notice[] = [];
  const add = (alert: string, runbook: string, text: string, host = '') =>
    notices.push(notice(record, now, { alert, about: host ? `${about}/${host}` : about, text, runbook }));
  if (speed !== null && usual !== null && speed < SLOW_SHARE * usual) {
    const text = `${speed} steps an hour, ${Math.round((100 * speed) / usual)} % of the ${usual} of the hour before`;
    add('throughput-drop', 'slow', text);
  }
  const isKnown = (alert: string) => record.alerts.filter((id) => id.startsWith(`${alert}/${about}/`)).length;
  if (slowHost && isKnown('slow-host') < MAX_HOSTS) {
    const { host, ratio, what } = slowHost;
    const text = host
      ? `${host} needs ${ratio} times as long as the other hosts for ${what}`
      : `${what} takes ${ratio} times as long as usual, and no single host is the cause`;
    add('slow-host', 'slow', text, host || 'network');
  }
  const left = Math.max(0, MAX_HOSTS - isKnown('host-set-aside'));
  for (const { host, reason } of (vitals.setAside ?? []).slice(-left || Number.POSITIVE_INFINITY)) {
    const text = `${host} was set aside (${reason}) and a spare host took its place${leftText(vitals.sparesLeft)}`;
    add('host-set-aside', 'spare-hosts', text, host);
  }
  const cap = record.policy.maxCostUsd;
  const projected = projectedUsd(record, attempt, now);
  if (cap !== null && projected !== undefined && projected > cap) {
    const text = `at this speed the run will cost $${projected.toFixed(0)}, limits.maxCostUsd is $${cap.toFixed(0)}; it will be stopped after a checkpoint`;
    add('spend-projected', 'spend', text);
  }
  if (lossAlert) add('loss-alert', 'loss', lossAlert);
  return notices;
}

/** Empty when the driver does not report it. */
function leftText(left: number | null | undefined): string {
  if (left === null || left === undefined) return '';
  return left === 1 ? '; 1 spare host is left' : `; ${left || 'no'} spare hosts are left`;
}
