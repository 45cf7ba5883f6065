import { SMP_V2_INSTANCE_TYPES } from '../../catalog/images/smddp';
import { SMP_REGIONS } from '../../catalog/images/smp-releases';
import { orList } from '../../config/issue';
import { type Finding, type Rule, regionOf, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { compareVersions } from '../image-version';
import { parameterPath, tensorAcrossHosts } from '../parameters';
import { degree, otherTypes } from '../strategy';
import { smpV2Rule } from './parameters';

/** `image.version` of a run on an SMP image. */
const smpImageVersion = ({ image }: RunSpec) => (image.kind === 'smp' ? image.version : undefined);

/** Finding when the SMP image is older than the lowest PyTorch version with a feature. */
function needsRelease(run: RunSpec, parameter: string, pytorch: string, smp: string): Finding[] {
  const version = smpImageVersion(run);
  if (degree(run, parameter, 1) <= 1 || !version || compareVersions(version, pytorch) >= 0) return [];
  return [
    {
      path: parameterPath(parameter),
      must: `must have SMP ${smp} (the image of PyTorch ${pytorch}) or newer`,
      got: `image.version ${version}`,
      fix: `use image.version "2.5.1"`,
    },
  ];
}

/** Rules about the platform of SMP v2: instance types, images, regions, launcher and releases. */
export const SMP_V2_PLATFORM_RULES: readonly Rule[] = [
  smpV2Rule('smp-v2/instance-type', 'error', (run) =>
    otherTypes(run, SMP_V2_INSTANCE_TYPES, 'smp-v2', 'use one of them, or distribution.library fsdp'),
  ),
  smpV2Rule('smp-v2/image', 'error', (run) =>
    when(run.image.kind === 'dlc' || run.image.kind === 'huggingface', 'image.kind', {
      must: 'must be smp, uri or environment for smp-v2',
      fix: 'use kind smp, version "2.5.1"',
    }),
  ),
  smpV2Rule('smp-v2/region', 'error', (run, _degrees, context) => {
    const region = regionOf(context);
    return when(run.image.kind === 'smp' && !!region && !SMP_REGIONS.includes(region), 'image.kind', {
      must: `must be available in the region; SMP images are in ${orList([...SMP_REGIONS])}`,
      got: region,
      fix: 'use one of these regions, or another library',
    });
  }),
  smpV2Rule('smp-v2/launcher', 'error', (run) =>
    when(run.distribution.launcher !== 'torchrun', 'distribution.launcher', {
      must: 'must be torchrun for smp-v2',
      fix: 'use torchrun',
    }),
  ),
  smpV2Rule('smp-v2/context-release', 'error', (run) => [
    ...needsRelease(run, 'context_parallel_degree', '2.3.1', '2.5.0'),
    ...needsRelease(run, 'expert_parallel_degree', '2.2.0', '2.3.0'),
  ]),
  smpV2Rule('smp-v2/fp8-release', 'error', (run) => {
    const version = smpImageVersion(run);
    return when(
      run.training.precision === 'fp8' && version !== undefined && compareVersions(version, '2.2.0') < 0,
      'training.precision',
      {
        must: 'must be bf16 before SMP 2.2.0 (the image of PyTorch 2.2.0)',
        got: `fp8 with image.version ${version}`,
        fix: 'use bf16, or image.version "2.5.1"',
      },
    );
  }),
];

/** Rules about the cluster layout for SMP v2, and about the end of its releases. */
export const SMP_V2_CLUSTER_RULES: readonly Rule[] = [
  smpV2Rule('smp-v2/smddp-no-shard', 'error', (run, { shard, tensor }) =>
    when(run.distribution.collectives === 'smddp' && tensor > 1 && shard === 1, 'distribution.collectives', {
      must: 'must be nccl with tensor parallelism and hybrid_shard_degree 1',
      fix: 'use nccl, or a higher shard degree',
    }),
  ),
  smpV2Rule('smp-v2/tensor-within-node', 'warning, may acknowledge', (run, { tensor }) =>
    tensorAcrossHosts(run, tensor, parameterPath('tensor_parallel_degree')),
  ),
  smpV2Rule('smp-v2/instance-groups', 'error', (run) =>
    when(run.distribution.contract === 'toolkit' && run.compute.instanceGroups.length > 0, 'compute.instanceGroups', {
      must: 'must be absent for smp-v2 under the toolkit contract',
      got: run.compute.instanceGroups.map((g) => g.name),
      fix: 'use compute.instanceType, or distribution.contract entrypoint',
    }),
  ),
  smpV2Rule('smp-v2/frozen', 'warning, may acknowledge', () => ({
    path: 'distribution.library',
    must: 'must be a library that still gets releases',
    fix: 'use fsdp for new work, or acknowledge smp-v2/frozen',
  })),
];
