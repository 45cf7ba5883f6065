import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { readAppliedLimit } from '../../aws/applied-limits';
import { findNewestRequest } from '../../aws/quota-increase';
import { serviceError } from '../aws-errors';
import { pollSeconds } from '../runs/wait';
import type { Terminal } from '../terminal';

/** A limit that is waited for. */
export interface WantedLimit {
  name: string;
  code: string;
  /** Value from which on it is enough. */
  desired: number;
}

/** Seconds between two looks: an increase takes minutes at best, and days where a person decides. */
const LOOK_SECONDS = 60;
/** Rounds of looks in a row that may fail: a wait of days outlives a network that was away for minutes. */
const PATIENCE = 10;
/** https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_RequestedServiceQuotaChange.html, 2026-11-23. */
const NEGATIVE = ['DENIED', 'CASE_CLOSED', 'NOT_APPROVED', 'INVALID_REQUEST'];

/** What came of the waiting: limits that will not come, with why; empty when all are there. */
export type Unmet = { wanted: WantedLimit; why: string }[];

/**
 * Follows increases until the limits are applied or refused: a line for each change. A limit counts, and not the word of a request: an approved one
 * is applied a little later. Ends at once for a limit that nobody has asked for.
 * @throws ServiceError when the service has not answered for ten rounds
 */
export async function followIncreases(
  client: ServiceQuotasClient,
  wanted: readonly WantedLimit[],
  terminal: Terminal,
): Promise<Unmet> {
  const said = new Map<string, string>();
  const unmet: Unmet = [];
  let failures = 0;
  for (let open = [...wanted]; open.length > 0; await sleep(1000 * pollSeconds(LOOK_SECONDS))) {
    const looks = await lookAtAll(client, open).catch((error: unknown) => {
      failures += 1;
      if (failures >= PATIENCE) throw serviceError('waiting for limits, which ends no request', error);
    });
    if (!looks) continue;
    failures = 0;
    for (const { one, text } of looks.filter((seen) => said.get(seen.one.code) !== seen.text)) {
      terminal.err(`${one.code}: ${text}`);
      said.set(one.code, text);
    }
    unmet.push(...looks.flatMap(({ one, end, text }) => (end === 'unmet' ? [{ wanted: one, why: text }] : [])));
    open = looks.flatMap(({ one, end }) => (end === undefined ? [one] : []));
    if (open.length === 0) break;
  }
  return unmet;
}

async function lookAtAll(client: ServiceQuotasClient, open: readonly WantedLimit[]) {
  const looks = [];
  for (const one of open) looks.push({ one, ...(await look(client, one)) });
  return looks;
}

async function look(
  client: ServiceQuotasClient,
  { code, desired }: WantedLimit,
): Promise<{ text: string; end?: 'met' | 'unmet' }> {
  const limit = await readAppliedLimit(client, code);
  if ('value' in limit && limit.value >= desired) return { text: `limit ${limit.value} is applied`, end: 'met' };
  const now = 'value' in limit ? `limit ${limit.value}, needed ${desired}` : `limit not known: ${limit.unknown}`;
  const request = await findNewestRequest(client, code);
  if (!request) return { text: `${now}; no increase was requested: add --request`, end: 'unmet' };
  const text = `${now}; increase to ${request.desired} is ${request.status}`;
  if (NEGATIVE.includes(request.status)) return { text, end: 'unmet' };
  return request.desired < desired ? { text: `${text}, which is too little`, end: 'unmet' } : { text };
}
