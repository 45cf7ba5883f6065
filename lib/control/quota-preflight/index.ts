import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { requireEnv } from '../../core/contracts/names';
import { acceptingRollback, pointingToLog, withId } from '../shared/custom-resource';
import type { PreflightDeps } from './deps';
import { onEvent } from './quota-preflight';

/** Clients and the Region from the function's environment variables. Throws when one is missing. */
export function preflightDeps(env: NodeJS.ProcessEnv): PreflightDeps {
  return {
    // Retries when throttled: the service allows five reads per second for the whole account.
    quotas: new ServiceQuotasClient({ maxAttempts: 8, retryMode: 'adaptive' }),
    region: requireEnv(env, 'AWS_REGION'),
    clock: { now: () => Date.now(), sleep: (ms) => sleep(ms) },
    log: (message) => console.log(message),
  };
}

let deps: PreflightDeps | undefined;

/** Entry point of the quota preflight. */
export const handler = pointingToLog(
  acceptingRollback(
    (event) => {
      deps ??= preflightDeps(process.env);
      return onEvent(deps, event);
    },
    withId({ Summary: 'not checked: the update was rolled back' }),
  ),
);
