import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { type QuotaPreflightProperties, quotaPreflightSchema } from '../../core/contracts/custom-resources';
import { requireEnv } from '../../core/contracts/names';
import { increaseCommand, judgeForDeploy, type QuotaRow, quotaSentence, quotaTable, shortRows } from '../../core/quota';
import { readAppliedLimits } from '../../shared/aws/applied-limits';
import { fileIncrease, findOpenRequest } from '../../shared/aws/quota-increase';
import { acceptingRollback, entryPoint, isNamed, whileItExists, withId } from '../shared/custom-resource';

/** Number of shortfalls in the error message of a failed deploy; the log has all of them. CloudFormation truncates messages. */
const NAMED_IN_REASON = 5;

/**
 * Gate of a deploy: compares what the environment needs with the applied quotas of this Region.
 *
 * Create and update check; an update is sent only when the needs changed. Delete does nothing. A quota that cannot be read is reported and
 * does not fail the deploy, because each launch checks again. Repeating an event is harmless: the only writes are the configured increase
 * requests, at most one per quota.
 */
export const onEvent = whileItExists(quotaPreflightSchema, async (deps: PreflightDeps, properties) => {
  const PhysicalResourceId = `quota-preflight-${properties.environment}`;
  if (properties.enforce === 'off' || properties.needs.length === 0) {
    const why = properties.enforce === 'off' ? 'quotas.enforce is off' : 'the environment names no instances';
    return { PhysicalResourceId, Data: { Summary: `not checked: ${why}` } };
  }
  const rows = await check(deps, properties);
  const short = shortRows(rows);
  if (short.length > 0) await handleShortfall(deps, properties, short);
  return { PhysicalResourceId, Data: { Summary: summary(rows, deps.clock.now()) } };
});

async function check(deps: PreflightDeps, { needs }: QuotaPreflightProperties): Promise<QuotaRow[]> {
  const limits = await readAppliedLimits(deps.quotas, needs, (ms) => deps.clock.sleep(ms));
  const rows = judgeForDeploy(needs, limits);
  for (const line of quotaTable(rows).split('\n')) deps.log(line);
  return rows;
}

async function handleShortfall(deps: PreflightDeps, properties: QuotaPreflightProperties, short: QuotaRow[]) {
  for (const row of short) deps.log(increaseCommand(row, deps.region) ?? `${row.name}: no code is known`);
  const requested = properties.requestIncrease ? await requestIncreases(deps, short) : [];
  for (const line of requested) deps.log(line);
  if (properties.enforce === 'fail') throw new Error(refusal(deps.region, properties, short, requested));
}

function refusal(region: string, properties: QuotaPreflightProperties, short: QuotaRow[], requested: string[]): string {
  const named = short.slice(0, NAMED_IN_REASON).map(quotaSentence);
  const more = short.length > named.length ? `; ${short.length - named.length} more in the log` : '';
  const commands = short.slice(0, NAMED_IN_REASON).flatMap((row) => increaseCommand(row, region) ?? []);
  const fix =
    requested.length > 0 ? `requests: ${requested.join('; ')}` : `request the increases: ${commands.join(' && ')}`;
  return (
    `quotas: must cover what environment ${properties.environment} needs in ${region}, ` +
    `got ${short.length} too small: ${named.join('; ')}${more}; ${fix} ` +
    `(slipway quota with the environment file of this deploy shows all of them), then deploy again`
  );
}

function summary(rows: readonly QuotaRow[], now: number): string {
  const count = (verdict: QuotaRow['verdict']) => rows.filter((row) => row.verdict === verdict).length;
  return (
    `${count('enough')} enough, ${count('short')} short, ${count('unknown')} unknown at ${new Date(now).toISOString()}; ` +
    'a deploy checks again only when the needs change, slipway preflight at any time'
  );
}

/** The service accepts about five of these calls per second. */
const PAUSE_MS = 250;

/**
 * Submits one increase request per insufficient quota unless one is open, and reports each outcome. Stops when the account's limit on open
 * requests is reached (20 per account, 2 in an opt-in Region).
 */
async function requestIncreases(deps: PreflightDeps, short: readonly QuotaRow[]): Promise<string[]> {
  const lines: string[] = [];
  for (const row of short) {
    if (!row.code) continue;
    try {
      lines.push(await requestIncrease(deps, row, row.code));
    } catch (error) {
      lines.push(`${row.name} (${row.code}): not requested, ${(error as Error).name}: ${(error as Error).message}`);
      if (isNamed(error, 'QuotaExceededException')) break;
    }
    await deps.clock.sleep(PAUSE_MS);
  }
  return lines;
}

async function requestIncrease(deps: PreflightDeps, row: QuotaRow, code: string): Promise<string> {
  const open = await findOpenRequest(deps.quotas, code);
  if (open) return `${row.name} (${code}): ${open.desired} already requested (${open.id}, ${open.status})`;
  const filed = await fileIncrease(deps.quotas, code, row.needed);
  return `${row.name} (${code}): ${row.needed} requested (${filed.id}, ${filed.status})`;
}

type PreflightDeps = ReturnType<typeof preflightDeps>;

/** Clients and the Region from the function's environment variables. Throws when one is missing. */
export function preflightDeps(env: NodeJS.ProcessEnv) {
  return {
    // Retries when throttled: the service allows five reads per second for the whole account.
    quotas: new ServiceQuotasClient({ maxAttempts: 8, retryMode: 'adaptive' }),
    region: requireEnv(env, 'AWS_REGION'),
    clock: { now: () => Date.now(), sleep: (ms: number): Promise<void> => sleep(ms) },
    log: (message: string) => console.log(message),
  };
}

const rolledBack = withId({ Summary: 'not checked: the update was rolled back' });

export const handler = entryPoint(
  () => preflightDeps(process.env),
  onEvent,
  (handle) => acceptingRollback(handle, rolledBack),
);
