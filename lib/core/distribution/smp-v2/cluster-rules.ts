import { SMP_RELEASES } from '../../catalog/images/smp-releases';
import { guide } from '../../config/formats/aws-pages';
import { type Rule, when } from '../../config/rule';
import { parameterPath, tensorAcrossHosts } from '../parameters';
import { SMP_V2_RELEASE_NOTES, smpV2Rule } from './parameters';

/** Rules about the cluster layout for SMP v2, and about the end of its releases. */
export const SMP_V2_CLUSTER_RULES: readonly Rule[] = [
  smpV2Rule({
    id: 'smp-v2/smddp-no-shard',
    level: 'error',
    what: 'With tensor parallelism and hybrid_shard_degree 1, the backend is nccl.',
    why: 'SMDDP does not support that process group.',
    source: SMP_V2_RELEASE_NOTES,
    find: (run, { shard, tensor }) =>
      when(run.distribution.collectives === 'smddp' && tensor > 1 && shard === 1, {
        path: 'distribution.collectives',
        must: 'must be nccl with tensor parallelism and hybrid_shard_degree 1',
        got: 'smddp',
        fix: 'use nccl, or a higher shard degree',
      }),
  }),
  smpV2Rule({
    id: 'smp-v2/tensor-within-node',
    level: 'warning',
    mayAcknowledge: true,
    what: 'Tensor parallelism stays inside one instance.',
    why: 'Otherwise every layer communicates over the network; AWS documents this for SMP v1 and uses at most 4 in its own v2 configurations.',
    source: guide('model-parallel-core-features-v2-tensor-parallelism'),
    find: (run, { tensor }) => tensorAcrossHosts(run, tensor, parameterPath('tensor_parallel_degree')),
  }),
  smpV2Rule({
    id: 'smp-v2/instance-groups',
    level: 'error',
    what: 'SMP v2 with the toolkit contract requires one instance type.',
    why: 'The SageMaker Python SDK rejects instance groups with torch_distributed.',
    source: 'aws/sagemaker-python-sdk v2.257.6 estimator.py _distribution_configuration',
    find: (run) =>
      when(run.distribution.contract === 'toolkit' && run.compute.instanceGroups.length > 0, {
        path: 'compute.instanceGroups',
        must: 'must be absent for smp-v2 under the toolkit contract',
        got: run.compute.instanceGroups.map((g) => g.name),
        fix: 'use compute.instanceType, or distribution.contract entrypoint',
      }),
  }),
  smpV2Rule({
    id: 'smp-v2/frozen',
    level: 'warning',
    mayAcknowledge: true,
    what: 'SMP v2 is pinned to its last release.',
    why: `The last release is ${SMP_RELEASES[0]?.smp} of ${SMP_RELEASES[0]?.date} (PyTorch ${SMP_RELEASES[0]?.pytorch}); later instance types were never added. FSDP on torchrun is the maintained alternative.`,
    source: SMP_V2_RELEASE_NOTES,
    find: () => [
      {
        path: 'distribution.library',
        must: 'must be a library that still gets releases',
        got: 'smp-v2',
        fix: 'use fsdp for new work, or acknowledge smp-v2/frozen',
      },
    ],
  }),
];
