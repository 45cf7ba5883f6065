import type { QuotaAnswer, StartRequest } from '../../contracts/control';
import { jobName } from '../../job/plan';
import { ladderOf } from '../../lifecycle/ladder';
import { planRun } from '../../planner/plan-run';
import { judgeForDeploy, type QuotaRow, runQuotaNeeds } from '../../quota';
import { checkRun } from '../../rules';
import { refuseUnsupported } from '../../rules/support';
import type { Descriptor } from '../../spec/descriptor';
import { hasErrors, type Issue, issue } from '../../spec/issue';
import { loadRun } from '../../spec/load';
import type { RunSpec } from '../../spec/run-spec';
import type { LimitReader } from '../shared/limit-reader';
import { memoryIssues } from '../shared/memory-check';

export interface CheckedStart {
  /** Absent when an issue is an error. */
  run?: RunSpec;
  issues: Issue[];
  quota: QuotaAnswer[];
}

/** Everything that is wrong with a start, computed here from the file's text alone. */
export async function checkStart(
  request: StartRequest,
  descriptor: Descriptor,
  region: string,
  limits: LimitReader,
): Promise<CheckedStart> {
  const loaded = loadRun(request.runFile, request.overrides);
  if (!loaded.value) return { issues: loaded.issues, quota: [] };
  const run = loaded.value;
  const rows = await quotaRows(run, limits);
  const issues = [
    ...loaded.issues,
    ...refuseUnsupported(checkRun(run, { descriptor, region })),
    ...codeIssues(run, request),
    ...nameIssues(request, descriptor),
    ...priceIssues(run, request, descriptor, region),
    ...memoryIssues(run, region),
    ...planCostIssues(run, descriptor, region),
    ...rows.filter(isAboveLimit).map(quotaIssue),
  ];
  return { ...(hasErrors(issues) ? {} : { run }), issues, quota: rows.map(toAnswer) };
}

async function quotaRows(run: RunSpec, limits: LimitReader): Promise<QuotaRow[]> {
  const needs = runQuotaNeeds(run);
  return judgeForDeploy(needs, await limits.read(needs));
}

/** Above the limit waiting does not help; above what is free the queue does. */
const isAboveLimit = (row: QuotaRow): boolean => row.limit !== null && row.needed > row.limit;

const quotaIssue = (row: QuotaRow): Issue =>
  issue('quota/limit', 'error', row.wantedBy, {
    must: `must be at most ${row.limit} (quota ${row.name}${row.code ? `, ${row.code}` : ''})`,
    got: row.needed,
    fix: 'lower it, or request an increase with slipway quota --request',
  });

const toAnswer = ({ code, name, needed, limit, inUse, verdict }: QuotaRow): QuotaAnswer => ({
  code: code ?? '',
  name,
  needed,
  limit,
  inUse,
  verdict,
});

function codeIssues({ code, distribution }: RunSpec, request: StartRequest): Issue[] {
  const inS3 = code.source.startsWith('s3://');
  const text = { got: code.source };
  const error = (must: string, fix: string) => [issue('code/digest', 'error', 'code.source', { ...text, must, fix })];
  if (code.builtin) return request.code ? error('must be own code when a digest is sent', 'send no digest') : [];
  if (request.code) return [];
  if (!inS3)
    return error('must come with the digest of its archive', 'launch with the slipway command, which packs the folder');
  if (distribution.contract === 'toolkit' || code.sha256) return [];
  return error(
    'must come with the digest of its archive: the driver starts nothing unchecked',
    'launch with the slipway command, which reads it, or write code.sha256',
  );
}

/** Job names have 63 characters at most, and the run id is in them. */
function nameIssues(request: StartRequest, descriptor: Descriptor): Issue[] {
  if (!request.runId) return [];
  const longest = jobName(descriptor.name, request.runId, 999);
  if (longest.length <= 63) return [];
  const must = `must leave room in the 63 characters of a job name (${descriptor.name}-<run id>-a001)`;
  return [issue('run-id/length', 'error', '', { must, got: request.runId, fix: 'use a shorter --run-id' })];
}

/** A plan that costs more than the cap ends at the cap, without a model: refused before it costs anything. */
function planCostIssues(run: RunSpec, descriptor: Descriptor, region: string): Issue[] {
  const cap = run.limits.maxCostUsd;
  const plan = planRun(run, { region, prices: descriptor.prices });
  const usd = Array.isArray(plan) ? null : plan.usd.onDemand;
  if (cap === undefined || usd === null || usd <= cap) return [];
  return [
    issue('limits/planned-cost', 'error', 'limits.maxCostUsd', {
      must: `must be at least the $${Math.ceil(usd)} that the whole run is planned to cost`,
      got: cap,
      fix: 'raise it, or train for fewer steps (slipway plan has the numbers)',
    }),
  ];
}

/** A price that nobody knows is no reason to spend without limit. */
function priceIssues(run: RunSpec, request: StartRequest, descriptor: Descriptor, region: string): Issue[] {
  const isKnown = ladderOf(run, region, descriptor.prices).every((rung) => rung.usdPerHour !== null);
  if (isKnown || run.limits.maxCostUsd !== undefined || request.acceptsUnknownPrice) return [];
  return [
    issue('price/unknown', 'error', 'compute.instanceType', {
      must: 'must have a known price, or the launch must say that it goes on without one',
      got: run.compute.instanceType,
      fix: 'set limits.maxCostUsd, add the rate to the environment (prices:), or confirm the question',
    }),
  ];
}
