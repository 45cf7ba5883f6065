import { admitRun, confirmRun, newRun } from '../../lib/core/lifecycle/intent';
import type { EpochMs, RunRecord } from '../../lib/core/lifecycle/record';
import type { Constants } from './constants';

/** A run that the queue has let start at `at`. Beside what is simulated it has the product's defaults. */
export function startedRecord(constants: Constants, at: EpochMs): RunRecord {
  const run = newRun(
    {
      runId: 'simulated-260101000000',
      name: 'simulated',
      team: 'default',
      environment: 'bench',
      kind: 'training',
      configHash: '',
      priority: 0,
      after: [],
      policy: {
        maxAttempts: constants.slipway.maxAttempts,
        maxRuntimeSeconds: constants.maxRuntimeSeconds,
        maxCostUsd: null,
        capacityBudgetSeconds: 7 * 86_400,
        startupMinutes: 30,
        silenceMinutes: constants.slipway.silenceMinutes,
        seesSteps: true,
        seesCommits: true,
        keepsCheckpoints: true,
        writesHeartbeats: true,
        keepAliveSeconds: 0,
        spareInstances: 0,
        lossPolicy: 'stop',
        preemptible: false,
        checkpointIntervalSeconds: 1800,
        capacityOptions: [{ id: 'as-written', instances: [], usage: 'training', usdPerHour: null }],
      },
    },
    at,
  );
  return admitRun(confirmRun(run, at)?.record ?? run, 'admitted', at).record;
}
