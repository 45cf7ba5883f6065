import type { CdkOutcome, DeployObservations } from '../deploy/deploy-world';
import { firstFive, holdsIf, noneOf, type Probe, probe, unknown } from '../probe';

const LOG_LINES = 3;

/** The last informative lines of the output, without the box that the CDK draws. */
export function endOf({ output }: CdkOutcome): string {
  const lines = output.split('\n').map((line) => line.trim());
  const words = lines.filter((line) => /failed|error|must|cannot|denied|invalid/i.test(line));
  return (words.length > 0 ? words : lines.filter(Boolean)).slice(-LOG_LINES).join(' | ').slice(0, 600);
}

const NOT_REACHED = unknown('not reached');

/** Level `deploy`: a small environment is rejected, fails, is deployed, updated and deleted. */
export const DEPLOY_PROBES: readonly Probe<DeployObservations>[] = [
  probe('refusal-leaves-nothing', 'rejected by the quota check, without remaining resources', ({ refusal }) => {
    if (!refusal) return NOT_REACHED;
    if (refusal.code === 0) return holdsIf(false, 'the deployment succeeded');
    if (!/quota/i.test(refusal.output)) return unknown(`failed for another reason: ${endOf(refusal)}`);
    return noneOf(refusal.left, 'no remaining resources');
  }),
  probe('first-deploy', 'cdk deploy succeeds', ({ first }) => {
    if (!first) return NOT_REACHED;
    return holdsIf(first.code === 0, first.code === 0 ? 'it succeeded' : endOf(first));
  }),
  probe('repeated-deploy', 'cdk deploy succeeds after a first deployment that failed late', ({ failing, first }) => {
    if (!failing || !first) return NOT_REACHED;
    if (failing.code === 0)
      return unknown('IAM accepted a principal that does not exist, so the first deployment did not fail');
    const seen = first.code === 0 ? `failed with: ${endOf(failing)}; then succeeded` : endOf(first);
    return holdsIf(first.code === 0, seen);
  }),
  probe('updates-in-place', 'a changed guardrail and a second team replace no stateful resource', ({ update }) => {
    if (!update) return NOT_REACHED;
    if (update.code !== 0) return holdsIf(false, endOf(update));
    return noneOf(update.replaced, 'nothing was replaced');
  }),
  probe('alarm-publishes', 'the history of the alarm contains a successful action', ({ alarm }) => {
    if (!alarm) return NOT_REACHED;
    if (alarm.length === 0) return unknown('no history of actions');
    const seen = firstFive(alarm);
    if (alarm.every((line) => !/action/i.test(line))) return unknown(seen);
    return holdsIf(
      alarm.some((line) => /success/i.test(line)),
      seen,
    );
  }),
  probe('destroy-leaves-nothing', 'cdk destroy succeeds without remaining resources', ({ destroy }) => {
    if (!destroy) return NOT_REACHED;
    if (destroy.code !== 0) return holdsIf(false, endOf(destroy));
    return noneOf(destroy.left, 'no remaining resources');
  }),
];
