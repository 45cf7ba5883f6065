import { LambdaClient } from '@aws-sdk/client-lambda';
import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import type {
  ControlAnswer,
  ControlPayload,
  IntentAnswer,
  Refusal,
  StartAnswer,
  UploadAnswer,
} from '../../core/contracts/control';
import { type RegisteredRunProperties, registeredRunSchema } from '../../core/contracts/custom-resources';
import { invokeControl } from '../../shared/aws/control';
import { controlSettings, s3Settings } from '../shared/clients';
import { acceptingRollback, entryPoint, whileItExists, withId } from '../shared/custom-resource';

/**
 * Submits a run that the environment file lists with `submit: on-change`, through the alias of its team, as a person would.
 *
 * The request id is the hash of file and code: a repeated deploy, or a CloudFormation rollback, finds the existing run. Deletion stops
 * nothing: the stack's own guard rejects the deletion while runs are live.
 */
export const onEvent = whileItExists(registeredRunSchema, async (deps: RegisteredRunDeps, properties, event) => {
  const { assetBucket, codeKey } = properties;
  const code = codeKey === undefined ? undefined : await read(deps, assetBucket, codeKey);
  const { runId, uploads } = await start(deps, properties, code);
  for (const upload of uploads) await put(deps, upload, code);
  await control<StartAnswer>(deps, properties, { action: 'start', runId, confirm: true });
  return { PhysicalResourceId: `run-${event.LogicalResourceId}`, Data: { RunId: runId } };
});

async function start(
  deps: RegisteredRunDeps,
  properties: RegisteredRunProperties,
  code: Uint8Array | undefined,
): Promise<IntentAnswer> {
  const { assetBucket, runFileKey, codeSha256: sha256, hash } = properties;
  const runFile = Buffer.from(await read(deps, assetBucket, runFileKey)).toString('utf8');
  return control<IntentAnswer>(deps, properties, {
    action: 'start',
    runFile,
    ...(code && sha256 && { code: { sha256, bytes: code.length } }),
    clientRequestId: hash,
  });
}

async function read({ s3 }: RegisteredRunDeps, Bucket: string, Key: string): Promise<Uint8Array> {
  const { Body } = await s3.send(new GetObjectCommand({ Bucket, Key }));
  return (await Body?.transformToByteArray()) ?? new Uint8Array();
}

/** How much of the function's five minutes the upload may take: within the Region it takes seconds. */
const UPLOAD_MS = 120_000;

/** The URL is a credential, so messages contain only the key. */
async function put({ fetch }: RegisteredRunDeps, { key, url, headers }: UploadAnswer, code: Uint8Array | undefined) {
  const signal = AbortSignal.timeout(UPLOAD_MS);
  const failure = (got: string) => new Error(`uploading ${key}: failed, got ${got}; deploy again`);
  const response = await fetch(url, { method: 'PUT', headers, body: code?.slice(), signal }).catch((error: Error) => {
    throw failure(error.name === 'TimeoutError' ? `no answer in ${UPLOAD_MS / 1000} s` : error.message);
  });
  if (!response.ok) throw failure(`HTTP ${response.status}`);
}

/** One call of the team's control alias. A refusal becomes the error message of the failed deploy. */
async function control<T extends ControlAnswer>(
  { lambda }: RegisteredRunDeps,
  { controlAliasArn }: RegisteredRunProperties,
  payload: ControlPayload,
): Promise<Exclude<T, Refusal>> {
  const invoked = await invokeControl(lambda, controlAliasArn, payload);
  if ('functionError' in invoked)
    throw new Error(`the launcher failed: ${invoked.functionError.slice(0, 500)}; see its log`);
  const body = invoked.answer;
  if (body.ok) return body as Exclude<T, Refusal>;
  const errors = body.issues.filter(({ level }) => level === 'error');
  throw new Error(errors.map(({ message }) => message).join(' | '));
}

export type RegisteredRunDeps = ReturnType<typeof deps>;
const deps = () => ({
  lambda: new LambdaClient(controlSettings),
  s3: new S3Client(s3Settings(process.env)),
  fetch,
});

const rolledBack = withId({ RunId: 'not submitted: the update was rolled back' });

export const handler = entryPoint(deps, onEvent, (handle) => acceptingRollback(handle, rolledBack));
