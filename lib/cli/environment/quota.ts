import { setTimeout as sleep } from 'node:timers/promises';
import { SageMakerClient } from '@aws-sdk/client-sagemaker';
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { isEnvironmentFile } from '../../core/config/load';
import {
  increaseCommand,
  judgeForLaunch,
  type Limits,
  type QuotaNeed,
  type QuotaRow,
  quotaTable,
  runQuotaNeeds,
  shortRows,
} from '../../core/quota';
import { readAppliedLimits } from '../../shared/aws/applied-limits';
import { readUsage } from '../../shared/aws/live-usage';
import { findOpenRequest, type IncreaseRequest, requestIncrease } from '../../shared/aws/quota-increase';
import { ask } from '../ask';
import { awsClient } from '../aws-client';
import { hasNoCredentials, serviceError } from '../aws-errors';
import { EXIT } from '../exit';
import { withS3Config } from '../hub/fetched';
import { type CommonOptions, readText, requireRun } from '../inputs';
import { json, type Terminal } from '../terminal';
import { callRegion } from './environment';
import { environmentIn, fileMeant, needsOfEnvironment, needsOfStack, requireEnvironment } from './environment-file';

export interface QuotaOptions extends CommonOptions {
  request?: boolean;
  /** Request without asking. */
  yes?: boolean;
}

/** `slipway quota FILE|ENVIRONMENT`: shows every quota that a run or an environment needs. */
export async function quota(file: string, options: QuotaOptions, terminal: Terminal): Promise<number> {
  const { region, needs, from } = await wantedBy(file, options);
  const rows = await quotaRows(needs, region);
  const client = awsClient(ServiceQuotasClient, { region });
  const short = shortRows(rows).filter((r) => r.code !== undefined);
  if (options.request && short.length > 0) await confirmRequests({ from, region, short }, options, terminal);
  const requests = options.request ? await fileAll(client, short) : await openRequests(client, short);
  if (options.json) terminal.out(json({ region, quotas: rows.map(quotaJson), requests }));
  else printQuotas({ region, rows, requests }, options.request ?? false, terminal);
  return EXIT.done;
}

/** What is requested for which file, and from AWS, where a person reads each request: that is asked before. */
async function confirmRequests(
  { from, region, short }: { from: string; region: string; short: readonly QuotaRow[] },
  { yes }: QuotaOptions,
  terminal: Terminal,
): Promise<void> {
  terminal.err(`increases in ${region} for ${from}:`);
  for (const row of short)
    terminal.err(`  ${row.name}: ${row.limit ?? '-'} now, ${row.needed + (row.inUse ?? 0)} requested`);
  if (!yes) await ask('Request these increases?', 'quota --request');
}

/** Applied limits in a region, at the rate that Service Quotas allows. */
export const readLimits = (needs: readonly QuotaNeed[], region: string): Promise<Limits> =>
  readAppliedLimits(awsClient(ServiceQuotasClient, { region, maxAttempts: 5, retryMode: 'adaptive' }), needs, (ms) =>
    sleep(ms),
  );

/** Needs, limits and usage of one region, evaluated for a launch now. */
export async function quotaRows(needs: readonly QuotaNeed[], region: string): Promise<QuotaRow[]> {
  const limits = await readLimits(needs, region);
  const usage = await readUsage(awsClient(SageMakerClient, { region, maxAttempts: 6, retryMode: 'adaptive' }), (ms) =>
    sleep(ms),
  ).catch((error: Error) => {
    if (hasNoCredentials(error)) throw serviceError(`reading the quotas of ${region}`, error);
    return { unknown: `${error.name}: ${error.message}` };
  });
  return judgeForLaunch(needs, limits, usage);
}

/** A row of `slipway quota --json`, with the field names of its published schema. */
export const quotaJson = (row: QuotaRow) => ({
  code: row.code ?? '',
  name: row.name,
  needed: row.needed,
  limit: row.limit,
  inUse: row.inUse,
  verdict: row.verdict,
  ...(row.reason && { reason: row.reason }),
});

/** The region, the needs, and the file or stack that has them. A bare name is the name of an environment. */
async function wantedBy(given: string, options: CommonOptions) {
  const file = fileMeant(given);
  if (file === undefined) {
    const region = await callRegion(options);
    return { region, needs: await needsOfStack(given, region), from: `the stack of environment ${given}` };
  }
  const text = readText(file);
  if (!isEnvironmentFile(text)) {
    // Errors in the file are reported before a region is required, because only the limits need the region.
    const needs = runQuotaNeeds(requireRun({ file, text }, await withS3Config({ file, text }, options)).run);
    return { region: await callRegion(options), needs, from: file };
  }
  const disk = requireEnvironment(file, text, options);
  const environment = await environmentIn(disk, file, options);
  return { region: environment.region, needs: needsOfEnvironment(disk, environment), from: file };
}

async function fileAll(client: ServiceQuotasClient, short: readonly QuotaRow[]): Promise<IncreaseRequest[]> {
  const filed: IncreaseRequest[] = [];
  for (const row of short) filed.push(await requestIncrease(client, row.code ?? '', row.needed + (row.inUse ?? 0)));
  return filed;
}

async function openRequests(client: ServiceQuotasClient, short: readonly QuotaRow[]): Promise<IncreaseRequest[]> {
  const found: IncreaseRequest[] = [];
  for (const { code = '' } of short) {
    const open = await findOpenRequest(client, code).catch(() => undefined);
    if (open) found.push({ code, desired: open.desired, state: 'open', detail: open.status });
  }
  return found;
}

function printQuotas(
  { region, rows, requests }: { region: string; rows: QuotaRow[]; requests: IncreaseRequest[] },
  requested: boolean,
  terminal: Terminal,
): void {
  terminal.out(quotaTable(rows));
  for (const r of requests) terminal.err(`${r.code}: increase to ${r.desired} ${r.state} (${r.detail})`);
  if (requested) return;
  const open = new Set(requests.map((r) => r.code));
  for (const row of shortRows(rows).filter((r) => !open.has(r.code ?? ''))) {
    const command = increaseCommand(row, region);
    if (command) terminal.err(`to request ${row.name}: ${command}`);
  }
}
