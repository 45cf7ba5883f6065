import { z } from 'zod';

/** A SHA-256 digest as text. */
export const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 digest of 64 hexadecimal digits');
