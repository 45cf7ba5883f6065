import { SMP_V1_BY_PYTORCH, SMP_V1_INSTANCE_TYPES } from '../../catalog/images/smddp';
import { orList } from '../../config/issue';
import { type Rule, when } from '../../config/rule';
import { compareVersions, pytorchOfImage } from '../image-version';
import { bf16Findings, parameterFindings, parameterPath } from '../parameters';
import { otherTypes } from '../strategy';
import { SMP_V1_PARAMETERS, SMP_V1_SINCE, smpV1Rule } from './parameters';

/** Rules about the platform of SMP v1: launcher, collectives, instance types and images. */
export const SMP_V1_PLATFORM_RULES: readonly Rule[] = [
  smpV1Rule('smp-v1/parameters', 'error, local', (run) =>
    parameterFindings(run.distribution.parameters, SMP_V1_PARAMETERS, { library: 'SMP v1' }),
  ),
  smpV1Rule('smp-v1/launcher', 'error', (run) => [
    ...when(run.distribution.launcher !== 'mpi', 'distribution.launcher', {
      must: 'must be mpi for smp-v1',
      fix: 'use mpi',
    }),
    ...when(run.distribution.contract !== 'toolkit', 'distribution.contract', {
      must: 'must be toolkit for smp-v1',
      fix: 'use toolkit',
    }),
  ]),
  smpV1Rule('smp-v1/collectives', 'error', (run) =>
    when(run.distribution.collectives === 'smddp', 'distribution.collectives', {
      must: 'must not be smddp with smp-v1',
      fix: 'leave it out',
    }),
  ),
  smpV1Rule('smp-v1/instance-type', 'error', (run) =>
    otherTypes(run, SMP_V1_INSTANCE_TYPES, 'smp-v1', 'use one of them, or another library'),
  ),
  smpV1Rule('smp-v1/pytorch', 'error', (run) => {
    const version = pytorchOfImage(run);
    const choices = orList(Object.keys(SMP_V1_BY_PYTORCH));
    const isWithout = run.image.kind !== 'smp' && version !== undefined && !(version in SMP_V1_BY_PYTORCH);
    return [
      ...when(run.image.kind === 'smp', 'image.kind', {
        must: 'must be dlc, huggingface, uri or environment for smp-v1',
        fix: 'use kind dlc, version "1.13.1"; the smp images carry SMP v2',
      }),
      ...when(isWithout, run.image.kind === 'uri' ? 'image.uri' : 'image.version', {
        must: `must carry PyTorch ${choices} for smp-v1`,
        got: run.image.version ?? version,
        fix: 'use kind dlc, version "1.13.1" or "2.0.0"',
      }),
    ];
  }),
  smpV1Rule('smp-v1/release', 'error', (run) => {
    const pytorch = pytorchOfImage(run) ?? '';
    const release = SMP_V1_BY_PYTORCH[pytorch];
    if (release === undefined) return [];
    return Object.entries(run.distribution.parameters).flatMap(([key, value]) => {
      const since = SMP_V1_SINCE[key];
      if (since === undefined || value === false || value === 1 || compareVersions(release, since) >= 0) return [];
      return {
        path: parameterPath(key),
        must: `must have SMP v1 ${since} or newer; the image of PyTorch ${pytorch} carries ${release}`,
        fix: 'use kind dlc, version "1.13.1" or "2.0.0"',
      };
    });
  }),
];

/** Rules about options of SMP v1 that require or exclude each other. */
export const SMP_V1_OPTION_RULES: readonly Rule[] = [
  smpV1Rule('smp-v1/precision', 'error', (run, { shard, isOn }) => {
    const written = run.written.training?.precision;
    const theirs = isOn('bf16') ? 'bf16' : isOn('fp16') ? 'fp16' : undefined;
    return [
      ...when(isOn('bf16') && shard <= 1, parameterPath('bf16'), {
        must: 'must be used with sharded_data_parallel_degree above 1',
        fix: 'use fp16: true, or shard',
      }),
      ...(isOn('bf16') ? bf16Findings(run, 'bf16') : []),
      ...when(isOn('bf16') && isOn('fp16'), parameterPath('fp16'), {
        must: 'must not be on together with bf16',
        fix: 'remove one of the two',
      }),
      ...when(written !== undefined && theirs !== undefined && written !== theirs, parameterPath(theirs ?? 'bf16'), {
        must: `must agree with training.precision ${written}`,
        fix: 'write one of the two',
      }),
    ];
  }),
  smpV1Rule('smp-v1/partitioning', 'error', (run, { pipeline, has }) => {
    const manual = run.distribution.parameters.auto_partition === false;
    const chosen = run.distribution.parameters.default_partition;
    return [
      ...when(manual && !has('default_partition'), parameterPath('default_partition'), {
        must: 'must be given with auto_partition false',
        fix: 'add default_partition: 0',
      }),
      ...when(typeof chosen === 'number' && chosen >= pipeline, parameterPath('default_partition'), {
        must: `must be below the ${pipeline} partitions`,
        fix: `use 0 to ${pipeline - 1}`,
      }),
    ];
  }),
  smpV1Rule('smp-v1/ddp-options', 'error', (_run, { has, isOn }) => [
    ...['ddp_port', 'ddp_dist_backend'].flatMap((key) =>
      when(has(key) && !isOn('ddp'), parameterPath(key), {
        must: 'must be used with ddp: true',
        fix: 'add ddp: true',
      }),
    ),
    ...when(isOn('ddp') && isOn('horovod'), parameterPath('horovod'), {
      must: 'must not be on together with ddp',
      fix: 'remove it',
    }),
  ]),
];
