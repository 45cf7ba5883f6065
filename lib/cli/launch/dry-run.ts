import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { isArchiveInS3 } from '../../core/config/code-source';
import type { Descriptor } from '../../core/config/descriptor';
import { fillPlaceholders } from '../../core/config/formats/places';
import { startsByDriver } from '../../core/config/resolve-run';
import type { RunSpec } from '../../core/config/run-spec';
import { jobFile } from '../../core/job/job-file';
import { codeUri, configText, type JobPlan, runIdAt, runPrefixes } from '../../core/job/plan';
import { processingJobRequest } from '../../core/job/processing-request';
import { trainingJobRequest } from '../../core/job/training-request';
import { AS_WRITTEN, runWithCapacityOption } from '../../core/lifecycle/capacity-options';
import { type Archive, sha256 } from '../../shared/archive/archive';
import { makeFolder } from '../../shared/local/make-folder';
import { driverFiles } from '../../shared/local/own-package';
import { writing } from '../page-file';
import { json } from '../terminal';
import { packedCode } from './submit';

/**
 * The request of the first attempt, computed locally in the same way as in the account, and the code archive that would be uploaded before
 * it.
 */
export async function dryRun(
  run: RunSpec,
  runFile: string,
  descriptor: Descriptor,
  options: { region?: string; runId?: string },
) {
  const archive = await packedCode(run, runFile, descriptor);
  const runId = options.runId ?? runIdAt(run.name, new Date());
  const { hash } = driverFiles();
  const driver = descriptor.driver ?? { uri: `s3://${descriptor.artifactBucket}/drivers/${hash}/`, hash };
  const plan: JobPlan = {
    // For an elastic run: the largest size, which its first capacity option requests.
    run: runWithCapacityOption(run, AS_WRITTEN),
    descriptor,
    region: options.region ?? descriptor.region,
    runId,
    attempt: 1,
    code: codeAddress(run, descriptor, runId, archive),
    driver: { uri: driver.uri, hash: driver.hash },
    configHash: sha256(configText(run)),
    resumeFrom: '',
    restartSecret: '',
  };
  return { plan, request: run.kind === 'processing' ? processingJobRequest(plan) : trainingJobRequest(plan), archive };
}

function codeAddress(
  run: RunSpec,
  descriptor: Descriptor,
  runId: string,
  archive: Archive | undefined,
): JobPlan['code'] {
  if (isArchiveInS3(run.code.source))
    return { uri: fillPlaceholders(run.code.source, { descriptor, runId }), sha256: run.code.sha256 ?? null };
  if (!archive) return undefined;
  return { uri: codeUri({ descriptor, runId }, run, archive.sha256), sha256: archive.sha256 };
}

/** Writes `request.json` and every object of the job's code, driver and job channels as `s3/<bucket>/<key>`. */
export function writeDryRun({ plan, request, archive }: Awaited<ReturnType<typeof dryRun>>, directory: string): void {
  writeFile(path.join(directory, 'request.json'), `${json(request)}\n`);
  const put = (uri: string, bytes: Buffer | string) =>
    writeFile(path.join(directory, 's3', uri.replace(/^s3:\/\//, '')), bytes);
  if (archive && plan.code) put(plan.code.uri, archive.bytes);
  if (!startsByDriver(plan.run)) return;
  put(`${runPrefixes(plan).job}job.json`, `${json(jobFile(plan))}\n`);
  for (const file of driverFiles().files) put(`${plan.driver.uri}${file.name}`, file.text);
}

function writeFile(file: string, bytes: Buffer | string): void {
  writing('--out', 'folder', file, () => {
    makeFolder(path.dirname(file));
    writeFileSync(file, bytes);
  });
}
