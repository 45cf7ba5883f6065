import { type ImageBase, publishedBaseUri } from '../catalog/base-images';
import { SMP_RELEASES } from '../catalog/smp-releases';
import type { Descriptor } from '../spec/descriptor';

/** PYTORCH_VERSION of containers/training/cuda.Dockerfile. */
const CUDA_BUILD_PYTORCH = '2.13.0';

/** URI of the image that an environment's own one is built on, without a lock. Throws where there is none. */
export function baseImageUri(base: ImageBase, region: string): string {
  const uri = publishedBaseUri(base, region);
  if (uri) return uri;
  throw new Error(
    base === 'cuda'
      ? `image.base: must be locked to a digest for ${region}, got cuda; run slipway lock, or name an image with image.uri`
      : `image.base: must be published in ${region}, got ${base}; use another base, or name an image with image.uri`,
  );
}

/** The Dockerfile of containers/training that builds on a base. */
export const dockerfileOf = (base: ImageBase): string => (base === 'cuda' ? 'cuda.Dockerfile' : 'Dockerfile');

/** Releases inside the environment's own image, as its descriptor tells them. */
export function baseImageContents(base: ImageBase): Descriptor['image'] {
  // Tag 2.13.0-cu133 of the Deep Learning Container: lib/catalog/images.ts.
  if (base === 'pytorch-2.13') return { pytorch: '2.13.0', cuda: '13.3' };
  // CUDA comes with PyTorch's wheel there.
  if (base === 'cuda') return { pytorch: CUDA_BUILD_PYTORCH };
  const release = SMP_RELEASES.find(({ smp }) => base === `smp-${smp}`);
  return release && { pytorch: release.pytorch, cuda: release.cuda, smp: release.smp, smddp: release.smddp };
}
