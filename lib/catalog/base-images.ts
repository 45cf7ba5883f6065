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
