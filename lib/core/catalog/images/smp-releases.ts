import { REGIONS } from '../regions';

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
