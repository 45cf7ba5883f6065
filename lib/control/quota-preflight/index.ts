import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { requireEnv } from '../../core/contracts/names';
import { acceptingRollback, entryPoint, withId } from '../shared/custom-resource';
import { onEvent, type PreflightDeps } from './quota-preflight';

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

const rolledBack = withId({ Summary: 'not checked: the update was rolled back' });

/** Entry point of the quota preflight. */
export const handler = entryPoint(
  () => preflightDeps(process.env),
  onEvent,
  (handle) => acceptingRollback(handle, rolledBack),
);
