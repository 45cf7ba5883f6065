import { dlcImageUri, smpImageUri } from './images';
import { SMP_RELEASES } from './smp-releases';

/** What an environment's own image may be built on. */
export type ImageBase = 'pytorch-2.13' | 'smp-2.8.0' | 'cuda';

/**
 * The published image of a base in a region, by tag; undefined where the region has none, and for `cuda`, which is whatever
 * nvidia/cuda image the account keeps in a repository of its own.
 */
export function publishedBaseUri(base: ImageBase, region: string): string | undefined {
  if (base === 'cuda') return undefined;
  if (base === 'pytorch-2.13') return dlcImageUri('2.13.0', region, true);
  const release = SMP_RELEASES.find(({ smp }) => base === `smp-${smp}`);
  return release && smpImageUri(release.pytorch, region, 'ml.p5.48xlarge');
}

/** PYTORCH_VERSION of containers/training/cuda.Dockerfile. */
const CUDA_BUILD_PYTORCH = '2.13.0';

/** Releases inside the environment's own image, as its descriptor tells them. */
export function baseImageContents(
  base: ImageBase,
): { pytorch: string; cuda?: string; smp?: string; smddp?: string } | undefined {
  // Tag 2.13.0-cu133 of the Deep Learning Container: lib/catalog/images/images.ts.
  if (base === 'pytorch-2.13') return { pytorch: '2.13.0', cuda: '13.3' };
  // CUDA comes with PyTorch's wheel there.
  if (base === 'cuda') return { pytorch: CUDA_BUILD_PYTORCH };
  const release = SMP_RELEASES.find(({ smp }) => base === `smp-${smp}`);
  return release && { pytorch: release.pytorch, cuda: release.cuda, smp: release.smp, smddp: release.smddp };
}
