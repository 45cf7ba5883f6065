import type { RunSpec } from '../../config/run-spec';
import { type Finding, type Rule, when } from '../rule';

const path = 'preemptible';

function checkpoints({ kind, checkpoints: { mode } }: RunSpec): Finding[] {
  if (kind !== 'training')
    return [
      {
        path,
        must: 'must be false in a processing run, which always starts from the beginning',
        got: true,
        fix: 'remove it',
      },
    ];
  return when(mode === 'none', {
    path,
    must: 'must be used with checkpoints: otherwise the run restarts at step 0 after every preemption',
    got: 'checkpoints.mode none',
    fix: 'set checkpoints, or remove preemptible',
  });
}

function ownCode({ code, distribution, network }: RunSpec): Finding[] {
  const seesRequests = distribution.contract === 'entrypoint' && !network.isolation;
  return when(code.builtin === undefined, {
    path,
    must: seesRequests
      ? 'must be used with code that saves and leaves with exit code 76 when SLIPWAY_HAND_OVER_FILE appears, or saves within 120 s of SIGTERM'
      : 'must be used with code that saves within 120 s of SIGTERM: requests to leave are not read under the toolkit contract or network isolation',
    got: 'custom code, which cannot be checked',
    fix: 'see "Preemption" in docs/queue.md, then acknowledge preemption/own-code',
  });
}

const RULES: readonly Rule[] = [
  {
    id: 'preemption/checkpoints',
    level: 'error',
    what: 'A preemptible run is a training run with checkpoints.',
    why: 'Only checkpoints preserve the progress of a preempted run.',
    source: 'docs/queue.md',
    check: checkpoints,
  },
  {
    id: 'preemption/own-code',
    level: 'warning',
    mayAcknowledge: true,
    what: 'User code of a preemptible run saves a checkpoint when a hand-over is requested.',
    why: 'Code that does not save is stopped after the grace period and loses the steps since its last checkpoint.',
    source: 'docs/queue.md',
    check: ownCode,
  },
];

/** The rules apply only to preemptible runs. */
export const PREEMPTION_RULES: readonly Rule[] = RULES.map((rule) => ({
  ...rule,
  check: (run, context) => (run.preemptible ? rule.check(run, context) : []),
}));
