import type { z } from 'zod';

/** An optional field of a file, with what its JSON Schema and the documentation say of it. */
export const option = <T extends z.ZodType>(
  type: T,
  description: string,
  more: { default?: unknown; examples?: unknown[]; deprecated?: boolean } = {},
) => type.optional().meta({ description, ...more });
