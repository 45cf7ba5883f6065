import { createHash, randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { clusterUsdPerHour, memoryIssues, priceIssues } from '../../core/admission';
import { isArchiveInS3, isPrefixInS3 } from '../../core/config/code-source';
import type { Descriptor } from '../../core/config/descriptor';
import { bucketAndKey, fillPlaceholders, parseS3Uri } from '../../core/config/formats/places';
import { hasErrors, issue } from '../../core/config/issue';
import type { RunSpec } from '../../core/config/run-spec';
import {
  type DesiredAnswer,
  type IntentAnswer,
  type StartAnswer,
  UNMET,
  type UploadAnswer,
} from '../../core/contracts/control';
import { nearestPublished } from '../../core/planner/run/nearest-published';
import { planRun } from '../../core/planner/run/plan-run';
import { usd } from '../../report/page/format';
import { type Archive, archiveFolder, codeArchive } from '../../shared/archive/archive';
import { MAX_CODE_BYTES } from '../../shared/archive/code-files';
import { objectsBelow } from '../../shared/aws/pages';
import { openObject } from '../../shared/aws/read-object';
import { ask } from '../ask';
import { awsClient, putBytes } from '../aws-client';
import { calling } from '../aws-errors';
import { preflightRun } from '../environment/preflight';
import { Interrupted, Refusal, ServiceError, UsageError } from '../exit';
import type { CommonOptions, ValidRun } from '../inputs';
import { planText } from '../plan/text/plan-text';
import { callControl } from '../runs/control-client';
import { interruptible, type Terminal } from '../terminal';

interface SubmitOptions extends CommonOptions {
  runId?: string;
  /** @default - a new id: each launch creates another run */
  clientRequestId?: string;
  /** ISO time before which it must not start. @default - as soon as there is capacity */
  startAt?: string;
  note?: string;
  acceptsUnknownPrice: boolean;
}

/** A checked run, its file, and its environment. */
export interface LaunchedFile {
  checked: ValidRun;
  file: string;
  descriptor: Descriptor;
}

/** Submits a run after its preflight and a confirmation of its cost. */
export async function submitConfirmed(
  launched: LaunchedFile,
  options: Omit<SubmitOptions, 'acceptsUnknownPrice'> & { yes?: boolean },
  terminal: Terminal,
): Promise<StartAnswer> {
  const { checked, descriptor } = launched;
  await preflightRun(checked.run, descriptor, terminal);
  const acceptsUnknownPrice = await confirmCost(checked.run, descriptor, options.yes ?? false, terminal);
  return submit(launched, { ...options, acceptsUnknownPrice }, terminal);
}

const UPLOAD_TRIES = 3;

/**
 * Sends the run file's text and the digest of its code, uploads the requested files, and confirms. A run that is interrupted meanwhile is
 * stopped: it may have been started although its id was not printed.
 */
export async function submit(
  { checked: { run, text, overrides }, file, descriptor }: LaunchedFile,
  options: SubmitOptions,
  terminal: Terminal,
): Promise<StartAnswer> {
  const archive = await packedCode(run, file, descriptor);
  const code = archive ? { sha256: archive.sha256, bytes: archive.bytes.length } : await digestInS3(run, descriptor);
  return interruptible(
    () => terminal.err('interrupted: the run will be stopped'),
    async (interrupted) => {
      const {
        runId,
        uploads,
        issues = [],
      } = await callControl<IntentAnswer>(descriptor, {
        action: 'start',
        runFile: text,
        overrides,
        ...(code && { code }),
        clientRequestId: options.clientRequestId ?? randomUUID(),
        ...(options.runId && { runId: options.runId }),
        ...(options.note !== undefined && { note: options.note }),
        ...(options.startAt && { startAt: options.startAt }),
        acceptsUnknownPrice: options.acceptsUnknownPrice,
      });
      // The others have been printed.
      for (const { message } of issues.filter(({ rule }) => rule === UNMET)) terminal.err(message);
      for (const upload of interrupted.aborted ? [] : uploads) {
        if (!archive || upload.sha256 !== archive.sha256)
          throw new ServiceError(
            `uploading ${upload.key}: the launcher requested a digest that was not sent; try again`,
          );
        terminal.err(`${runId}: uploading code (${Math.ceil(archive.bytes.length / 1024)} KiB)`);
        await put(upload, archive.bytes, interrupted);
      }
      const started =
        !interrupted.aborted && (await callControl<StartAnswer>(descriptor, { action: 'start', runId, confirm: true }));
      if (started && !interrupted.aborted) return started;
      await callControl<DesiredAnswer>(descriptor, { action: 'stop', runId, reason: 'interrupted during its launch' });
      throw new Interrupted(`${runId}: interrupted during its launch, and stopped`);
    },
  );
}

async function put(upload: UploadAnswer, bytes: Buffer, interrupted: AbortSignal): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const failure = await tryPut(upload, bytes, interrupted);
    if (!failure || interrupted.aborted) return;
    // The URL is a credential, so messages contain only the key.
    if (attempt === UPLOAD_TRIES)
      throw new ServiceError(`uploading ${upload.key}: failed ${UPLOAD_TRIES} times, got ${failure}; try again`);
  }
}

async function tryPut(upload: UploadAnswer, bytes: Buffer, interrupted: AbortSignal): Promise<string | undefined> {
  try {
    const signal = AbortSignal.any([interrupted, AbortSignal.timeout(uploadMillis(bytes.length))]);
    const status = await putBytes(upload.url, upload.headers, bytes, signal);
    return status < 300 ? undefined : `HTTP ${status}`;
  } catch (error) {
    const { cause, code, message } = error as NodeJS.ErrnoException;
    if ((cause as Error | undefined)?.name === 'TimeoutError')
      return `no response in ${uploadMillis(bytes.length) / 1000} s`;
    return code ?? message;
  }
}

/** Timeout of one try of an upload: two minutes, plus the time at 100 kB per second. Its URL is valid for an hour. */
const uploadMillis = (bytes: number): number => 120_000 + 1000 * Math.ceil(bytes / 100_000);

/**
 * Digest and size of a code archive in S3, read with the caller's own permissions: the run uses the object that exists now, not a later
 * version. Undefined for other code, and when the run file contains the digest or the toolkit downloads the archive itself.
 */
async function digestInS3(
  { code, distribution }: RunSpec,
  descriptor: Descriptor,
): Promise<{ sha256: string; bytes: number } | undefined> {
  if (!isArchiveInS3(code.source)) return undefined;
  const uri = fillPlaceholders(code.source, { descriptor, runId: '' });
  const place = bucketAndKey(uri);
  if (place.Key === '' || code.sha256 || distribution.contract === 'toolkit') return undefined;
  return calling(`reading code.source ${uri}`, async () => {
    const { Body } = await awsClient(S3Client, { region: descriptor.region }).send(new GetObjectCommand(place));
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const chunk of Body as Readable) {
      hash.update(chunk);
      bytes += chunk.length;
    }
    return { sha256: hash.digest('hex'), bytes };
  });
}

/** Shows the expected cost of the run and asks for confirmation; returns whether an unknown price was accepted. */
export async function confirmCost(
  run: RunSpec,
  descriptor: Descriptor,
  yes: boolean,
  terminal: Terminal,
): Promise<boolean> {
  const price = clusterUsdPerHour(run, descriptor);
  const hours = run.limits.maxRuntimeSeconds / 3600;
  if (price) {
    const attempt = `${usd(price.usd * hours)} for an attempt of maxRuntimeSeconds (${hours.toFixed(1)} h)`;
    const cap = run.limits.maxCostUsd === undefined ? '' : `; the run stops at ${usd(run.limits.maxCostUsd)}`;
    terminal.err(`cost: ${usd(price.usd)} per hour, ${attempt}${cap}`);
    for (const note of price.notes) terminal.err(`  ${note}`);
    showPlan(run, descriptor, terminal);
  } else {
    terminal.err('cost: not known for this instance type and region');
    const issues = priceIssues(run, descriptor, true);
    if (hasErrors(issues)) throw new Refusal(issues);
    for (const { message } of issues) terminal.err(message);
    if (yes && run.limits.maxCostUsd === undefined) throw new Refusal([unknownPrice()]);
  }
  if (!yes) await ask(price ? 'Launch?' : 'Launch at an unknown price?');
  return price === undefined;
}

/** Shows the planner's prediction if the run's model is known. A run that cannot fit is rejected before it costs anything. */
function showPlan(run: RunSpec, descriptor: Descriptor, terminal: Terminal): void {
  const plan = planRun(run, descriptor);
  if (Array.isArray(plan)) return;
  terminal.err(planText(run, { ...plan, nearest: nearestPublished(plan.layout) }));
  const issues = memoryIssues(run, descriptor.region);
  if (issues.length > 0) throw new Refusal(issues);
}

const unknownPrice = () =>
  issue('limits/unknown-price', 'error', 'limits.maxCostUsd', {
    must: 'must be set with --yes when the price is not known',
    fix: 'add limits.maxCostUsd, add the rate to `prices` of the environment, or launch it alone, without --yes',
  });

/**
 * The archive that the command uploads: of a folder beside the run file, or of a prefix in S3, which is read with the caller's own
 * permissions. Every attempt starts with the objects that exist now, whatever is written to the prefix later. Undefined for other code.
 * @throws UsageError for a prefix that is empty or too large
 */
export async function packedCode(run: RunSpec, runFile: string, descriptor: Descriptor): Promise<Archive | undefined> {
  const { source } = run.code;
  if (!isPrefixInS3(source)) return codeArchive(run, runFile);
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-code-'));
  try {
    await downloadPrefix(fillPlaceholders(source, { descriptor, runId: '' }), folder, descriptor.region);
    return await archiveFolder(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function downloadPrefix(uri: string, folder: string, region: string): Promise<void> {
  const { bucket: Bucket, key: Prefix } = parseS3Uri(uri);
  const s3 = awsClient(S3Client, { region });
  const objects = await calling(`listing code.source ${uri}`, () => objectsBelow(s3, Bucket, Prefix));
  const bytes = objects.reduce((sum, { bytes: size }) => sum + size, 0);
  if (objects.length === 0)
    throw new UsageError(`code.source: must be a prefix with objects, got ${uri}; upload the code under it`);
  if (bytes > MAX_CODE_BYTES)
    throw new UsageError(
      `code.source: must contain at most ${MAX_CODE_BYTES / 2 ** 20} MiB, got ${Math.ceil(bytes / 2 ** 20)} MiB under ${uri}; keep data elsewhere`,
    );
  for (const { key } of objects) {
    const file = path.join(folder, relativeName(key.slice(Prefix.length), uri));
    const { Body } = await calling(`reading s3://${Bucket}/${key}`, () =>
      openObject(s3, { Bucket, Key: key }, MAX_CODE_BYTES),
    );
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, await Body.transformToByteArray());
  }
}

/** A key may contain any text: one such as `a/../../x` must not be written outside the folder. */
function relativeName(name: string, uri: string): string {
  if (path.posix.normalize(name) === name && !/^\.\.?(\/|$)/.test(name) && !path.posix.isAbsolute(name)) return name;
  throw new UsageError(`code.source: must contain plain file names, got ${name} under ${uri}; rename the object`);
}
