// The law of an import: whatever is not listed as not carried is in the request that Slipway makes of the run file, with the same value.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { leavesOf } from '../../../lib/cli/import/differences';
import { importRequest } from '../../../lib/cli/import/import';
import { descriptorSchema } from '../../../lib/core/config/descriptor';
import { loadRun } from '../../../lib/core/config/load';
import type { RunSpec } from '../../../lib/core/config/run-spec';
import { trainingJobRequest } from '../../../lib/core/job/training-request';
import environment from '../../fixtures/conformance/sdk-v2/environment.json';
import { validRunFiles } from '../../support/arbitrary-runs';

const DESCRIPTOR = descriptorSchema.parse(environment);
const seed = Number(process.env.SLIPWAY_LAWS_SEED ?? Date.now() % 1_000_000_000);

/** What belongs to one job, or to the tool, and not to what a user asked for. The program of a job of Slipway is in its job file. */
const OWN =
  /^(TrainingJobName$|OutputDataConfig\.S3OutputPath$|Tags\[slipway:|Environment\.SLIPWAY_|HyperParameters\.sagemaker_job_name$|InputDataConfig\[(driver|job|code)\]|ProfilerConfig\.S3OutputPath$|TensorBoardOutputConfig\.|AlgorithmSpecification\.MetricDefinitions\[slipway:|CheckpointConfig\.S3Uri$|HyperParameters\.sagemaker_submit_directory$|AlgorithmSpecification\.ContainerArguments$)/;

const requestOf = (run: RunSpec) =>
  trainingJobRequest({
    run,
    descriptor: DESCRIPTOR,
    region: 'us-west-2',
    runId: 'generated',
    attempt: 1,
    code: { uri: 's3://bucket/code/abc.tar.gz', sha256: null },
    driver: { uri: 's3://bucket/drivers/abc/', hash: 'abc' },
    configHash: '',
    resumeFrom: '',
    restartSecret: '',
  });

const specOf = (text: string): RunSpec => {
  const { value, issues } = loadRun(text);
  if (!value) throw new Error(`${issues[0]?.message}\n${text}`);
  return value;
};

const more = fc.record({
  contract: fc.constantFrom('entrypoint', 'toolkit'),
  shuffleSeed: fc.nat(99),
  contentType: fc.constantFrom('text/csv', undefined),
  interContainerEncryption: fc.boolean(),
  remoteDebug: fc.boolean(),
  profiler: fc.constantFrom('off', 'sagemaker'),
  maxPendingSeconds: fc.constantFrom(7200, undefined),
  image: fc.constantFrom(
    { kind: 'environment' },
    { kind: 'dlc', version: '2.8' },
    { kind: 'uri', uri: '111122223333.dkr.ecr.us-west-2.amazonaws.com/own:tag' },
  ),
});

const files = fc.tuple(validRunFiles, more).map(([file, m]) => ({
  ...file,
  image: m.image,
  data: file.data.map((channel) => ({ ...channel, shuffleSeed: m.shuffleSeed, contentType: m.contentType })),
  distribution: { ...file.distribution, contract: m.contract },
  network: { interContainerEncryption: m.interContainerEncryption },
  observability: { ...file.observability, remoteDebug: m.remoteDebug, profiler: m.profiler },
  limits: { ...file.limits, maxPendingSeconds: m.maxPendingSeconds },
}));

test(`an imported request is the same request again (seed ${seed})`, () => {
  fc.assert(
    fc.property(files, (file) => {
      const request = requestOf(specOf(stringify(file)));
      const imported = importRequest(request, { source: 'generated', descriptor: DESCRIPTOR });
      const listed = imported.notCarried.map(({ field }) => field).filter((field) => !OWN.test(field));
      expect(listed).toEqual([]);
      const again = leavesOf(requestOf(specOf(imported.runFile)));
      for (const [field, value] of leavesOf(request)) {
        if (!OWN.test(field)) expect([field, again.get(field)]).toEqual([field, value]);
      }
    }),
    { seed, numRuns: 40 },
  );
}, 120_000);
