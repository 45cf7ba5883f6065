import { formed } from './field';

/** A SHA-256 digest as text. */
export const sha256 = formed(/^[0-9a-f]{64}$/, 'must be a SHA-256 digest of 64 hexadecimal digits');
