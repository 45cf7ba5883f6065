import { nearest } from '../../catalog/nearest';
import { orList } from '../../config/issue';
import { totalSteps } from '../../config/resolve-run';
import { type Finding, type Rule, rule, trainingRule, UNSHOWN, when } from '../../config/rule';
import type { MixturePhase, RunSpec } from '../../config/run-spec';
import { BUILTIN_ONLY } from '../own-code';

const OPTION = 'training.mixture';

function phaseFindings(run: RunSpec, phases: readonly MixturePhase[]): Finding[] {
  const last = totalSteps(run.training) ?? Number.POSITIVE_INFINITY;
  return phases.flatMap(({ fromStep = 0 }, i) => {
    const before = phases[i - 1]?.fromStep ?? 0;
    return [
      ...when(i === 0 ? fromStep !== 0 : fromStep <= before, `${OPTION}[${i}].fromStep`, {
        must: i === 0 ? 'must be 0 in the first phase' : `must be above ${before}, where the previous phase begins`,
        got: fromStep,
        fix: i === 0 ? 'remove it' : 'sort the phases by step',
      }),
      ...when(i > 0 && fromStep >= last, `${OPTION}[${i}].fromStep`, {
        level: 'warning',
        must: `must be below the ${last} steps of the run for the phase to begin`,
        fix: 'reduce it, or remove the phase',
      }),
    ];
  });
}

function channelFindings(run: RunSpec, phases: readonly MixturePhase[]): Finding[] {
  const channels = run.data.map(({ channel }) => channel);
  return phases.flatMap(({ weights }, i) => [
    ...when(Object.keys(weights).length === 0, `${OPTION}[${i}].weights`, {
      must: 'must contain at least one channel',
      got: UNSHOWN,
      fix: 'add channels of data, each with its weight',
    }),
    ...Object.keys(weights)
      .filter((name) => !channels.includes(name))
      .map((name) => ({
        path: `${OPTION}[${i}].weights.${name}`,
        must: 'must be a channel of data',
        got: name,
        fix: channels.length > 0 ? `use ${orList(nearest(name, channels))}` : `add - { channel: ${name}, s3: ... }`,
      })),
  ]);
}

export const MIXTURE_RULES: readonly Rule[] = [
  rule('training/mixture', 'error', (run) => {
    const phases = run.training.mixture;
    if (!phases) return [];
    if (run.code.builtin !== 'builtin') return when(run.code.builtin === undefined, OPTION, BUILTIN_ONLY);
    return [
      ...phaseFindings(run, phases),
      ...channelFindings(run, phases),
      ...when(run.code.arguments['data-channel'] !== undefined, 'code.arguments.data-channel', {
        must: 'must be omitted with training.mixture, which lists the channels',
      }),
    ];
  }),
].map(trainingRule);
