import { type ImageBase, publishedBaseUri } from '../../core/catalog/images/images';

/** URI of the base image of the environment's own image, without a lock. Throws when there is none. */
export function baseImageUri(base: ImageBase, region: string): string {
  const uri = publishedBaseUri(base, region);
  if (uri) return uri;
  throw new Error(
    base === 'cuda'
      ? `image.base: must be locked to a digest for ${region}, got cuda; run slipway preflight --lock, or name an image with image.uri`
      : `image.base: must be published in ${region}, got ${base}; use another base, or name an image with image.uri`,
  );
}

/** The Dockerfile of containers/training that builds on a base. */
export const dockerfileOf = (base: ImageBase): string => (base === 'cuda' ? 'cuda.Dockerfile' : 'Dockerfile');
