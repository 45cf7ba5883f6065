import { HeadObjectCommand } from '@aws-sdk/client-s3';
import { judgeAdmission } from '../../../core/admission';
import { CODE_IN_IMAGE, isArchiveInS3 } from '../../../core/config/code-source';
import type { Descriptor } from '../../../core/config/descriptor';
import { bucketAndKey } from '../../../core/config/formats/places';
import { hasErrors, type Issue, issue } from '../../../core/config/issue';
import { loadRun } from '../../../core/config/load';
import type { RunSpec } from '../../../core/config/run-spec';
import type { QuotaAnswer, Refusal, StartAnswer, StartRequest } from '../../../core/contracts/control';
import { jobName, MAX_JOB_NAME } from '../../../core/contracts/names';
import { confirmRun } from '../../../core/lifecycle/intent';
import type { RunRecord } from '../../../core/lifecycle/record';
import { type QuotaRow, runQuotaNeeds } from '../../../core/quota';
import { isNamed } from '../../shared/custom-resource';
import type { LimitReader } from '../../shared/limit-reader';
import { sendAbout } from '../../shared/queue';
import { changeRun } from '../change-run';
import type { ControlDeps } from '../deps';
import { refusal } from '../own-run';

/** A start whose run file has been checked against schema, rules and admission. */
interface CheckedStart {
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
  if (longest.length <= MAX_JOB_NAME) return [];
  const must = `must leave room in the ${MAX_JOB_NAME} characters of a job name (${descriptor.name}-<run id>-a001)`;
  return [issue('run-id/length', 'error', '--run-id', { must, got: runId, fix: 'use a shorter --run-id' })];
}

/** Second call of a start: checks that the uploads exist and are complete, and adds the run to the queue. */
export async function confirmStart(deps: ControlDeps, own: RunRecord): Promise<StartAnswer | Refusal> {
  const missing = await uploadIssue(deps, own.runId);
  if (missing) return refusal(missing);
  const record = await changeRun(deps, own, (r) => confirmRun(r, deps.now().getTime()));
  if (!record.confirmed) {
    const must = 'must be uploaded within an hour of the start, and before the run is stopped';
    return refusal(issue('code/upload', 'error', 'code.source', { must, got: record.state, fix: 'launch again' }));
  }
  await sendAbout(deps, 'admit', record);
  return {
    ok: true,
    runId: record.runId,
    state: record.state,
    queuePosition: null,
    trainingJobName: record.attempt?.jobName ?? null,
    trainingJobArn: record.attempt?.jobArn ?? null,
  };
}

async function uploadIssue(deps: ControlDeps, runId: string): Promise<Issue | undefined> {
  const { code } = (await deps.store.findIntent(runId)) ?? {};
  if (!code || code.bytes === null) return undefined;
  const text = (got: string) =>
    issue('code/upload', 'error', 'code.source', {
      must: `must be uploaded whole (${code.bytes} bytes) before the start is confirmed`,
      got,
      fix: 'launch again',
    });
  try {
    const head = await deps.s3.send(new HeadObjectCommand(bucketAndKey(code.uri)));
    return head.ContentLength === code.bytes ? undefined : text(`${head.ContentLength} bytes`);
  } catch (error) {
    if (isNamed(error, 'NotFound', 'NoSuchKey')) return text('nothing');
    // Without permission to list the bucket, S3 answers 403 for an object that does not exist.
    if (isNamed(error, 'Forbidden', 'AccessDenied')) return text('nothing that may be read (HTTP 403)');
    throw error;
  }
}
