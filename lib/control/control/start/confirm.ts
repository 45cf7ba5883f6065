import { HeadObjectCommand } from '@aws-sdk/client-s3';
import { bucketAndKey } from '../../../core/config/formats/s3-uri';
import { type Issue, issue } from '../../../core/config/issue';
import type { ConfirmRequest, Refusal, StartAnswer } from '../../../core/contracts/control';
import { confirmRun } from '../../../core/lifecycle/intent';
import { isNamed } from '../../shared/custom-resource';
import { sendMessage } from '../../shared/queue';
import { changeRun } from '../change-run';
import type { ControlDeps } from '../deps';
import { findOwnRun, refusal } from '../own-run';

/** Second call of a start: checks that the uploads exist and are complete, and adds the run to the queue. */
export async function confirmStart(
  deps: ControlDeps,
  team: string,
  request: ConfirmRequest,
): Promise<StartAnswer | Refusal> {
  const own = await findOwnRun(deps, team, request.runId);
  if ('ok' in own) return own;
  const missing = await uploadIssue(deps, own.runId);
  if (missing) return refusal(missing);
  const record = await changeRun(deps, own, (r) => confirmRun(r, deps.now().getTime()));
  await sendMessage(
    deps.sqs,
    deps.queueUrl,
    { kind: 'admit', runId: record.runId },
    `${record.runId}/${record.version}`,
  );
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
      fix: 'launch again; the same command goes on where it was',
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
