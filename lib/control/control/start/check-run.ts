import { judgeAdmission } from '../../../core/admission';
import { CODE_IN_IMAGE, isArchiveInS3 } from '../../../core/config/code-source';
import type { Descriptor } from '../../../core/config/descriptor';
import { hasErrors, type Issue, issue } from '../../../core/config/issue';
import { loadRun } from '../../../core/config/load';
import type { RunSpec } from '../../../core/config/run-spec';
import type { QuotaAnswer, StartRequest } from '../../../core/contracts/control';
import { jobName } from '../../../core/contracts/job-name';
import { type QuotaRow, runQuotaNeeds } from '../../../core/quota';
import type { LimitReader } from '../../shared/limit-reader';

/** A start whose run file has been checked against schema, rules and admission. */
export interface CheckedStart {
  /** Absent when there is an issue of severity error. */
  run?: RunSpec;
  issues: Issue[];
  quota: QuotaAnswer[];
}

/** Checks a start and returns all issues, computed here from the text of the run file alone. */
export async function checkStart(
  request: StartRequest,
  descriptor: Descriptor,
  region: string,
  limits: LimitReader,
): Promise<CheckedStart> {
  const loaded = loadRun(request.runFile, request.overrides);
  if (!loaded.value) return { issues: loaded.issues, quota: [] };
  const run = loaded.value;
  const verdict = judgeAdmission(run, {
    descriptor,
    region,
    limits: await limits.read(runQuotaNeeds(run)),
    acceptsUnknownPrice: request.acceptsUnknownPrice ?? false,
  });
  const issues = [...loaded.issues, ...verdict.issues, ...codeIssues(run, request), ...nameIssues(request, descriptor)];
  return { ...(hasErrors(issues) ? {} : { run }), issues, quota: verdict.quota.map(toAnswer) };
}

const toAnswer = ({ code, name, needed, limit, inUse, verdict }: QuotaRow): QuotaAnswer => ({
  code: code ?? '',
  name,
  needed,
  limit,
  inUse,
  verdict,
});

function codeIssues({ code, distribution }: RunSpec, request: StartRequest): Issue[] {
  const inS3 = isArchiveInS3(code.source);
  const text = { got: code.source };
  const error = (must: string, fix: string) => [issue('code/digest', 'error', 'code.source', { ...text, must, fix })];
  if (code.builtin || code.source === CODE_IN_IMAGE)
    return request.code ? error('must be own code when a digest is sent', 'send no digest') : [];
  if (request.code) return [];
  if (!inS3)
    return error('must come with the digest of its archive', 'launch with the slipway command, which packs it');
  if (distribution.contract === 'toolkit' || code.sha256) return [];
  return error(
    'must come with the digest of its archive: the driver starts nothing unchecked',
    'launch with the slipway command, which reads it, or write code.sha256',
  );
}

/** Job names are limited to 63 characters and contain the run id; an id that is generated from a run's name is short enough. */
function nameIssues({ runId = '' }: StartRequest, descriptor: Descriptor): Issue[] {
  const longest = jobName(descriptor.name, runId, 999);
  if (longest.length <= 63) return [];
  const must = `must leave room in the 63 characters of a job name (${descriptor.name}-<run id>-a001)`;
  return [issue('run-id/length', 'error', '', { must, got: runId, fix: 'use a shorter --run-id' })];
}
