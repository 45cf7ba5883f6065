import { dlcImageUri, smpImageUri } from './images';
import { SMP_RELEASES } from './smp-releases';

/** Supported base images for an environment's own image. */
export type ImageBase = 'pytorch-2.13' | 'smp-2.8.0' | 'cuda';

/**
 * URI of the published base image in a region, with tag. Undefined when the region has none, and for `cuda`, which is an nvidia/cuda image
 * in a repository of the account.
 */
export function publishedBaseUri(base: ImageBase, region: string): string | undefined {
  if (base === 'cuda') return undefined;
  if (base === 'pytorch-2.13') return dlcImageUri('2.13.0', region, true);
  const release = SMP_RELEASES.find(({ smp }) => base === `smp-${smp}`);
  return release && smpImageUri(release.pytorch, region, 'ml.p5.48xlarge');
}

/** PYTORCH_VERSION of containers/training/cuda.Dockerfile. */
const CUDA_BUILD_PYTORCH = '2.13.0';

/** Releases in the environment's own image, as listed in its descriptor. */
export function baseImageContents(
  base: ImageBase,
): { pytorch: string; cuda?: string; smp?: string; smddp?: string } | undefined {
  // Tag 2.13.0-cu133 of the Deep Learning Container: lib/core/catalog/images/images.ts.
  if (base === 'pytorch-2.13') return { pytorch: '2.13.0', cuda: '13.3' };
  // The PyTorch wheel contains its CUDA libraries.
  if (base === 'cuda') return { pytorch: CUDA_BUILD_PYTORCH };
  const release = SMP_RELEASES.find(({ smp }) => base === `smp-${smp}`);
  return release && { pytorch: release.pytorch, cuda: release.cuda, smp: release.smp, smddp: release.smddp };
}
