import type { CdkOutcome, DeployObservations, DeployWorld } from '../deploy/deploy-world';
import { type Finding, firstFive, holdsIf, type Probe, unknown } from '../probe';

const LOG_LINES = 3;

/** The last lines that say something, without the frame that the CDK draws around them. */
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

/** Level `deploy`: a small environment is refused, fails, is deployed, changed and destroyed. */
export const DEPLOY_PROBES: readonly Probe<DeployWorld>[] = [
  onSequence(
    'refusal-leaves-nothing',
    'refused on quota; nothing of the environment is left',
    ({ refusal }, expected) => {
      if (!refusal) return unknown(expected, 'not reached');
      if (refusal.code === 0) return holdsIf(false, expected, 'the deploy went through');
      if (!/quota/i.test(refusal.output)) return unknown(expected, `failed for another reason: ${endOf(refusal)}`);
      return holdsIf(refusal.left.length === 0, expected, firstFive(refusal.left) || 'nothing is left');
    },
  ),
  onSequence('first-deploy', 'cdk deploy succeeds', ({ first }, expected) =>
    first
      ? holdsIf(first.code === 0, expected, first.code === 0 ? 'it did' : endOf(first))
      : unknown(expected, 'not reached'),
  ),
  onSequence('repeated-deploy', 'a deploy after a first one that failed late', ({ failing, first }, expected) => {
    if (!failing || !first) return unknown(expected, 'not reached');
    if (failing.code === 0)
      return unknown(expected, 'IAM took a principal that does not exist, so that the first deploy did not fail');
    return holdsIf(
      first.code === 0,
      expected,
      first.code === 0 ? `failed with: ${endOf(failing)}; then succeeded` : endOf(first),
    );
  }),
  onSequence(
    'updates-in-place',
    'a changed guardrail and a second team replace nothing that holds state',
    ({ update }, expected) => {
      if (!update) return unknown(expected, 'not reached');
      if (update.code !== 0) return holdsIf(false, expected, endOf(update));
      return holdsIf(update.replaced.length === 0, expected, firstFive(update.replaced) || 'nothing was replaced');
    },
  ),
  onSequence('alarm-publishes', 'the history of the alarm says that its action succeeded', ({ alarm }, expected) => {
    if (!alarm || alarm.length === 0) return unknown(expected, alarm ? 'no history of actions' : 'not reached');
    if (alarm.every((line) => !/action/i.test(line))) return unknown(expected, firstFive(alarm));
    return holdsIf(
      alarm.some((line) => /success/i.test(line)),
      expected,
      firstFive(alarm),
    );
  }),
  onSequence(
    'destroy-leaves-nothing',
    'cdk destroy succeeds and leaves nothing of the environment',
    ({ destroy }, expected) => {
      if (!destroy) return unknown(expected, 'not reached');
      if (destroy.code !== 0) return holdsIf(false, expected, endOf(destroy));
      return holdsIf(destroy.left.length === 0, expected, firstFive(destroy.left) || 'nothing is left');
    },
  ),
];
