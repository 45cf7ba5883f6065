import type { RunSpec } from '../spec/run-spec';
import { api, type Finding, type Rule, when } from './rule';

/** Sections that only a training run has. */
const TRAINING_ONLY = ['distribution', 'checkpoints', 'training', 'model', 'progress'] as const;

function sections(run: RunSpec): Finding[] {
  if (run.kind === 'training') {
    return when(run.output !== undefined, {
      path: 'output',
      must: 'must go with kind processing; a training run has checkpoints',
      got: run.output?.s3,
      fix: 'remove it, or use kind: processing',
    });
  }
  return [
    ...when(run.output === undefined, {
      path: 'output',
      must: 'must be given for a processing run',
      fix: 'add output: { s3: "s3://{dataBucket}/..." }',
    }),
    ...TRAINING_ONLY.flatMap((section) =>
      when(run.written[section] !== undefined, {
        path: section,
        must: 'must be absent from a processing run',
        got: Object.keys(run.written[section] ?? {}),
        fix: 'remove it, or use kind: training',
      }),
    ),
  ];
}

function cluster(run: RunSpec): Finding[] {
  if (run.kind !== 'processing') return [];
  const { compute } = run;
  return [
    ...when(compute.instanceGroups.length > 0, {
      path: 'compute.instanceGroups',
      must: 'must be absent from a processing run',
      got: compute.instanceGroups.map((g) => g.name),
      fix: 'use instanceType and instanceCount',
    }),
    ...when(compute.capacity !== 'on-demand', {
      path: 'compute.capacity',
      must: 'must be on-demand for a processing run',
      got: compute.capacity,
      fix: 'remove it',
    }),
    ...when(compute.keepAliveSeconds > 0, {
      path: 'compute.keepAliveSeconds',
      must: 'must be 0 for a processing run',
      got: compute.keepAliveSeconds,
      fix: 'remove it',
    }),
    ...when(compute.alternatives.length > 0, {
      path: 'compute.alternatives',
      must: 'must be absent from a processing run',
      got: compute.alternatives.map((a) => a.instanceType),
      fix: 'remove it',
    }),
    ...when(compute.instanceCount > 100, {
      path: 'compute.instanceCount',
      must: 'must be at most 100 for a processing run',
      got: compute.instanceCount,
      fix: 'use 100 or less',
    }),
    ...when(run.limits.maxRuntimeSeconds > 777_600, {
      path: 'limits.maxRuntimeSeconds',
      must: 'must be at most 777600 (9 days) for a processing run',
      got: run.limits.maxRuntimeSeconds,
      fix: 'use 777600 or less',
    }),
  ];
}

function inputs(run: RunSpec): Finding[] {
  if (run.kind !== 'processing') return [];
  return [
    ...when(run.data.length > 10, {
      path: 'data',
      must: 'must be at most 10 inputs for a processing run',
      got: run.data.length,
      fix: 'put related data under one prefix',
    }),
    ...run.data.flatMap((channel, i) => [
      ...when(channel.s3 === undefined, {
        path: `data[${i}]`,
        must: 'must be in S3 for a processing run',
        got: channel.channel,
        fix: 'use s3',
      }),
      ...when(channel.s3DataType === 'AugmentedManifestFile', {
        path: `data[${i}].s3DataType`,
        must: 'must be S3Prefix or ManifestFile for a processing run',
        got: channel.s3DataType,
        fix: 'use ManifestFile',
      }),
      ...when(channel.inputMode === 'FastFile', {
        path: `data[${i}].inputMode`,
        must: 'must be File or Pipe for a processing run',
        got: channel.inputMode,
        fix: 'use File',
      }),
    ]),
  ];
}

export const PROCESSING_RULES: readonly Rule[] = [
  {
    id: 'processing/sections',
    level: 'error',
    what: 'A processing run has an output and no distribution, checkpoints or training.',
    why: 'CreateProcessingJob has no such fields.',
    source: api('CreateProcessingJob'),
    check: sections,
  },
  {
    id: 'processing/cluster',
    level: 'error',
    what: 'A processing run uses one on-demand instance type.',
    why: 'CreateProcessingJob has no spot, groups or warm pools.',
    source: api('ProcessingClusterConfig'),
    check: cluster,
  },
  {
    id: 'processing/inputs',
    level: 'error',
    what: 'A processing run reads at most ten S3 inputs by File or Pipe.',
    why: 'The API takes no other.',
    source: api('ProcessingS3Input'),
    check: inputs,
  },
];
