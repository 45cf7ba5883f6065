import type { CdkCustomResourceEvent } from 'aws-lambda';
import type { z } from 'zod';

/** Properties of a custom resource. Throws one line that names each property that does not hold. */
export function parseProperties<T extends z.ZodType>(schema: T, event: CdkCustomResourceEvent): z.output<T> {
  const parsed = schema.safeParse(event.ResourceProperties, { reportInput: true });
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  throw new Error(`${event.ResourceType} ${event.LogicalResourceId}: ${lines.join('; ')}`);
}

/** Whether a service error has one of these names. */
export const isNamed = (error: unknown, ...names: string[]): boolean => names.includes((error as Error)?.name);
