import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { readAppliedLimit } from '../../shared/aws/applied-limits';
import { findNewestRequest, type HeldRequest } from '../../shared/aws/quota-increase';
import { serviceError } from '../aws-errors';
import { pollSeconds } from '../runs/wait';
import type { Terminal } from '../terminal';

/** A quota whose increase is awaited. */
export interface WantedLimit {
  name: string;
  code: string;
  /** Minimum value that is sufficient. */
  desired: number;
}

/** Seconds between two polls: an increase takes minutes at best, and days if a person decides. */
const POLL_SECONDS = 60;
/** Number of consecutive rounds that may fail: a wait of several days must survive a network outage of some minutes. */
const PATIENCE = 10;
/** How long it may take until a completed increase appears as the applied limit, milliseconds: up to an hour according to reports. */
const SETTLE_MS = 3_600_000;
/**
 * Final states of a request that grant nothing, with an explanation.
 * https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_RequestedServiceQuotaChange.html, 2026-11-23.
 */
const REFUSED: Readonly<Record<string, string>> = {
  DENIED: 'see AWS Support for the reason',
  NOT_APPROVED: 'see AWS Support for the reason',
  CASE_CLOSED: 'see its support case for the reason',
  INVALID_REQUEST: 'Service Quotas could not process it',
};

/** Result of the wait: quotas that will not be increased, with the reason; empty when all limits are sufficient. */
export type Unmet = { wanted: WantedLimit; why: string }[];

/** The last limit seen while a request was still open, by code: a higher limit later shows that the request was granted. */
type OpenLimits = Map<string, number>;

/**
 * Follows quota increases until the limits are applied, or until their requests have ended with less: prints a line for each change. The
 * applied limit counts, not the status of the request: an approved increase is applied some time later, and AWS may approve less than was
 * requested. Ends immediately for a quota without a request.
 * @throws ServiceError when the service has not answered for ten rounds
 */
export async function followIncreases(
  client: ServiceQuotasClient,
  wanted: readonly WantedLimit[],
  terminal: Terminal,
): Promise<Unmet> {
  const printed = new Map<string, string>();
  const opened: OpenLimits = new Map();
  const unmet: Unmet = [];
  let failures = 0;
  for (let open = [...wanted]; open.length > 0; await sleep(1000 * pollSeconds(POLL_SECONDS))) {
    const observations = await observeAll(client, open, opened).catch((error: unknown) => {
      failures += 1;
      if (failures >= PATIENCE) throw serviceError('waiting for limits (the requests remain open)', error);
    });
    if (!observations) continue;
    failures = 0;
    for (const { one, text } of observations.filter((seen) => printed.get(seen.one.code) !== seen.text)) {
      terminal.err(`${one.name} (${one.code}): ${text}`);
      printed.set(one.code, text);
    }
    unmet.push(...observations.flatMap(({ one, end, text }) => (end === 'unmet' ? [{ wanted: one, why: text }] : [])));
    open = observations.flatMap(({ one, end }) => (end === undefined ? [one] : []));
    if (open.length === 0) break;
  }
  return unmet;
}

async function observeAll(client: ServiceQuotasClient, open: readonly WantedLimit[], opened: OpenLimits) {
  const observations = [];
  for (const one of open) observations.push({ one, ...(await observe(client, one, opened)) });
  return observations;
}

interface Observation {
  text: string;
  end?: 'met' | 'unmet';
}

async function observe(
  client: ServiceQuotasClient,
  { code, desired }: WantedLimit,
  opened: OpenLimits,
): Promise<Observation> {
  const limit = await readAppliedLimit(client, code);
  const value = 'value' in limit ? limit.value : undefined;
  if (value !== undefined && value >= desired) return { text: `limit ${value} is applied`, end: 'met' };
  const now = 'value' in limit ? `limit ${value}, needed ${desired}` : `limit not known: ${limit.unknown}`;
  const request = await findNewestRequest(client, code);
  if (!request) return { text: `${now}; no increase was requested: add --request`, end: 'unmet' };
  const { status, caseId } = request;
  const text = `${now}; increase to ${request.desired} is ${status}${caseId ? ` (support case ${caseId})` : ''}`;
  if (status in REFUSED) return { text: `${text}: ${REFUSED[status]}`, end: 'unmet' };
  if (request.desired < desired) return { text: `${text}, which is not enough`, end: 'unmet' };
  if (status === 'APPROVED') return approved(text, request, value, opened.get(code));
  if (value !== undefined) opened.set(code, value);
  return { text };
}

/** An approved request whose limit is too low: less was granted if the limit has changed, or has had enough time to. */
function approved(text: string, { desired, updatedAt }: HeldRequest, value?: number, before?: number): Observation {
  if (value === undefined) return { text };
  const moved = before !== undefined && value > before;
  const settled = updatedAt !== undefined && Date.now() - updatedAt.getTime() > SETTLE_MS;
  return moved || settled ? { text: `${text}, with ${value} of ${desired} granted`, end: 'unmet' } : { text };
}
