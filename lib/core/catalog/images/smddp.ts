import { REGIONS } from '../regions';

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

// Newest first.
// Source: https://docs.aws.amazon.com/sagemaker/latest/dg/model-parallel-release-notes.html, retrieved 2026-11-20.
// Several SMP releases share one mutable tag: a tag names the PyTorch version and does not pin an SMP release.

/** One release of SMP v2: its version, and the versions in the image that contains it. */
interface SmpRelease {
  smp: string;
  date: string;
  pytorch: string;
  python: string;
  cuda: string;
}

/** Releases of SMP v2 from the AWS release notes, newest first. */
export const SMP_RELEASES: readonly SmpRelease[] = [
  { smp: '2.8.0', date: '2025-04-01', pytorch: '2.5.1', python: 'py311', cuda: '12.4' },
  { smp: '2.7.0', date: '2024-12-04', pytorch: '2.4.1', python: 'py311', cuda: '12.1' },
  { smp: '2.6.1', date: '2024-10-31', pytorch: '2.4.1', python: 'py311', cuda: '12.1' },
  { smp: '2.6.0', date: '2024-10-17', pytorch: '2.4.1', python: 'py311', cuda: '12.1' },
  { smp: '2.5.0', date: '2024-08-28', pytorch: '2.3.1', python: 'py311', cuda: '12.1' },
  { smp: '2.4.0', date: '2024-06-20', pytorch: '2.3.1', python: 'py311', cuda: '12.1' },
  { smp: '2.3.1', date: '2024-05-09', pytorch: '2.2.0', python: 'py310', cuda: '12.1' },
  { smp: '2.3.0', date: '2024-04-11', pytorch: '2.2.0', python: 'py310', cuda: '12.1' },
  { smp: '2.2.0', date: '2024-03-07', pytorch: '2.2.0', python: 'py310', cuda: '12.1' },
  { smp: '2.1.0', date: '2024-02-06', pytorch: '2.1.2', python: 'py310', cuda: '12.1' },
  { smp: '2.0.0', date: '2023-12-19', pytorch: '2.0.1', python: 'py310', cuda: '12.1' },
];

/** Regions with SMP v2 images. */
export const SMP_REGIONS: readonly string[] = Object.keys(REGIONS).filter((region) => REGIONS[region]?.smpAccount);
