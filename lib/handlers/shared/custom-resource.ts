import type { CdkCustomResourceEvent } from 'aws-lambda';
import type { z } from 'zod';
import type { Issue } from '../../spec/issue';

/** Properties of a custom resource. Throws one line that names each property that does not hold. */
export function parseProperties<T extends z.ZodType>(schema: T, event: CdkCustomResourceEvent): z.output<T> {
  const parsed = schema.safeParse(event.ResourceProperties, { reportInput: true });
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  throw new Error(`${event.ResourceType} ${event.LogicalResourceId}: ${lines.join('; ')}`);
}

/** Tells what is a warning, and throws what is an error, all of it at once. */
export function refuseErrors(issues: readonly Issue[], warn: (message: string) => void): void {
  for (const { level, message } of issues) if (level !== 'error') warn(message);
  const errors = issues.filter(({ level }) => level === 'error');
  if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join('\n'));
}

/**
 * The same handler, whose errors end with the log group that holds the whole story. Lambda names it in the environment; the line that the
 * CDK's provider framework adds below (`Logs: /aws/lambda/...`) names one that is not used.
 */
export function pointingToLog<A extends unknown[], T>(handle: (...args: A) => Promise<T>): (...args: A) => Promise<T> {
  return async (...args) => {
    try {
      return await handle(...args);
    } catch (error) {
      const group = process.env.AWS_LAMBDA_LOG_GROUP_NAME;
      if (group && error instanceof Error) error.message += `; its log is in log group ${group}`;
      throw error;
    }
  };
}

/** Whether a service error has one of these names. */
export const isNamed = (error: unknown, ...names: string[]): boolean => names.includes((error as Error)?.name);
