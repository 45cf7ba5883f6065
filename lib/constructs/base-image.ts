import { dlcImageUri, smpImageUri } from '../catalog/images';
import { SMP_RELEASES } from '../catalog/smp-releases';
import type { Descriptor } from '../spec/descriptor';

/** URI of the image that an environment's own one is built on. Throws where the Region has none. */
export function baseImageUri(base: 'pytorch-2.13' | 'smp-2.8.0' | 'cuda', region: string): string {
  const uri = base === 'pytorch-2.13' ? dlcImageUri('2.13.0', region, true) : smpBase(base, region);
  if (uri) return uri;
  throw new Error(
    `image.base: must be published in ${region}, got ${base}; use another base, or name an image with image.uri`,
  );
}

/** Releases inside the environment's own image, as its descriptor tells them. */
export function baseImageContents(base: 'pytorch-2.13' | 'smp-2.8.0' | 'cuda'): Descriptor['image'] {
  // Tag 2.13.0-cu133 of the Deep Learning Container: lib/catalog/images.ts.
  if (base === 'pytorch-2.13') return { pytorch: '2.13.0', cuda: '13.3' };
  const release = SMP_RELEASES.find(({ smp }) => base === `smp-${smp}`);
  return release && { pytorch: release.pytorch, cuda: release.cuda, smp: release.smp, smddp: release.smddp };
}

function smpBase(base: string, region: string): string | undefined {
  const release = SMP_RELEASES.find(({ smp }) => base === `smp-${smp}`);
  return release && smpImageUri(release.pytorch, region, 'ml.p5.48xlarge');
}
