/**
 * SMDDP version by PyTorch version of the image that contains it.
 * Sources: https://docs.aws.amazon.com/sagemaker/latest/dg/data-parallel-release-notes.html; the 2.5.1 row from
 * aws/deep-learning-containers@0192682 (not on the SMDDP pages). Retrieved 2026-11-20.
 */
export const SMDDP_BY_PYTORCH: Readonly<Record<string, string>> = {
  '2.5.1': '2.6.0',
  '2.4.1': '2.5.0',
  '2.3.1': '2.3.0',
  '2.3.0': '2.3.0',
  '2.2.0': '2.2.0',
  '2.1.2': '2.1.0',
  '2.1.0': '2.1.0',
  '2.0.1': '2.0.1',
  '2.0.0': '1.8.0',
  '1.13.1': '1.7.0',
  '1.12.1': '1.6.0',
  '1.12.0': '1.5.0',
  '1.11.0': '1.4.1',
};

/** Instance types with SMDDP AllReduce and AllGather: https://docs.aws.amazon.com/sagemaker/latest/dg/distributed-data-parallel-support.html */
export const SMDDP_INSTANCE_TYPES: readonly string[] = ['ml.p4d.24xlarge', 'ml.p4de.24xlarge'];
/** Instance types with AllReduce only; AWS no longer develops SMDDP for them. */
export const SMDDP_ALLREDUCE_ONLY: readonly string[] = ['ml.p3dn.24xlarge'];

/** PyTorch version of the last AWS image with SMDDP; images with PyTorch 2.6 and later do not contain it. */
export const SMDDP_LAST_PYTORCH = '2.5.1';

/** SMP v1 by PyTorch version: https://docs.aws.amazon.com/sagemaker/latest/dg/distributed-model-parallel-support.html, 2026-11-20. */
export const SMP_V1_BY_PYTORCH: Readonly<Record<string, string>> = {
  '2.0.0': '1.15.0',
  '1.13.1': '1.15.0',
  '1.12.1': '1.13.0',
  '1.12.0': '1.11.0',
  '1.11.0': '1.10.0',
  '1.10.2': '1.7.0',
  '1.10.0': '1.5.0',
  '1.9.1': '1.4.0',
  '1.8.1': '1.6.0',
};
/** Instance types listed as supported in the SMP v1 documentation. */
export const SMP_V1_INSTANCE_TYPES: readonly string[] = [
  'ml.g4dn.12xlarge',
  'ml.p3.16xlarge',
  'ml.p3dn.24xlarge',
  'ml.p4d.24xlarge',
  'ml.p4de.24xlarge',
];
/** SMP v2: https://docs.aws.amazon.com/sagemaker/latest/dg/distributed-model-parallel-support-v2.html, 2026-11-20. */
export const SMP_V2_INSTANCE_TYPES: readonly string[] = [
  'ml.p4d.24xlarge',
  'ml.p4de.24xlarge',
  'ml.p5.48xlarge',
  'ml.p5e.48xlarge',
];
