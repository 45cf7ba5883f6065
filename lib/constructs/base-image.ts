import { dlcImageUri, smpImageUri } from '../catalog/images';
import { SMP_RELEASES } from '../catalog/smp-releases';

/** URI of the image that an environment's own one is built on. Throws where the Region has none. */
export function baseImageUri(base: 'pytorch-2.13' | 'smp-2.8.0' | 'cuda', region: string): string {
  const uri = base === 'pytorch-2.13' ? dlcImageUri('2.13.0', region, true) : smpBase(base, region);
  if (uri) return uri;
  throw new Error(
    `image.base: must be published in ${region}, got ${base}; use another base, or name an image with image.uri`,
  );
}

function smpBase(base: string, region: string): string | undefined {
  const release = SMP_RELEASES.find(({ smp }) => base === `smp-${smp}`);
  return release && smpImageUri(release.pytorch, region, 'ml.p5.48xlarge');
}
