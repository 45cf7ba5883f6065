import type { CdkOutcome, DeployObservations, DeployWorld } from '../deploy/deploy-world';
import { type Finding, firstFive, holdsIf, type Probe, unknown } from '../probe';

const LOG_LINES = 3;

/** The last informative lines of the output, without the box that the CDK draws. */
export function endOf({ output }: CdkOutcome): string {
  const lines = output.split('\n').map((line) => line.trim());
  const words = lines.filter((line) => /failed|error|must|cannot|denied|invalid/i.test(line));
  return (words.length > 0 ? words : lines.filter(Boolean)).slice(-LOG_LINES).join(' | ').slice(0, 600);
}

const onSequence = (
  assumption: string,
  expected: string,
  judge: (seen: DeployObservations, expected: string) => Finding,
): Probe<DeployWorld> => ({
  assumption,
  run: async (world) => judge(await world.observations(), expected),
});

/** Level `deploy`: a small environment is rejected, fails, is deployed, updated and deleted. */
export const DEPLOY_PROBES: readonly Probe<DeployWorld>[] = [
  onSequence(
    'refusal-leaves-nothing',
    'rejected by the quota check, without remaining resources',
    ({ refusal }, expected) => {
      if (!refusal) return unknown(expected, 'not reached');
      if (refusal.code === 0) return holdsIf(false, expected, 'the deployment succeeded');
      if (!/quota/i.test(refusal.output)) return unknown(expected, `failed for another reason: ${endOf(refusal)}`);
      return holdsIf(refusal.left.length === 0, expected, firstFive(refusal.left) || 'no remaining resources');
    },
  ),
  onSequence('first-deploy', 'cdk deploy succeeds', ({ first }, expected) =>
    first
      ? holdsIf(first.code === 0, expected, first.code === 0 ? 'it succeeded' : endOf(first))
      : unknown(expected, 'not reached'),
  ),
  onSequence(
    'repeated-deploy',
    'cdk deploy succeeds after a first deployment that failed late',
    ({ failing, first }, expected) => {
      if (!failing || !first) return unknown(expected, 'not reached');
      if (failing.code === 0)
        return unknown(expected, 'IAM accepted a principal that does not exist, so the first deployment did not fail');
      return holdsIf(
        first.code === 0,
        expected,
        first.code === 0 ? `failed with: ${endOf(failing)}; then succeeded` : endOf(first),
      );
    },
  ),
  onSequence(
    'updates-in-place',
    'a changed guardrail and a second team replace no stateful resource',
    ({ update }, expected) => {
      if (!update) return unknown(expected, 'not reached');
      if (update.code !== 0) return holdsIf(false, expected, endOf(update));
      return holdsIf(update.replaced.length === 0, expected, firstFive(update.replaced) || 'nothing was replaced');
    },
  ),
  onSequence('alarm-publishes', 'the history of the alarm contains a successful action', ({ alarm }, expected) => {
    if (!alarm || alarm.length === 0) return unknown(expected, alarm ? 'no history of actions' : 'not reached');
    if (alarm.every((line) => !/action/i.test(line))) return unknown(expected, firstFive(alarm));
    return holdsIf(
      alarm.some((line) => /success/i.test(line)),
      expected,
      firstFive(alarm),
    );
  }),
  onSequence('destroy-leaves-nothing', 'cdk destroy succeeds without remaining resources', ({ destroy }, expected) => {
    if (!destroy) return unknown(expected, 'not reached');
    if (destroy.code !== 0) return holdsIf(false, expected, endOf(destroy));
    return holdsIf(destroy.left.length === 0, expected, firstFive(destroy.left) || 'no remaining resources');
  }),
];
