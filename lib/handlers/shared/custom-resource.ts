import type { CdkCustomResourceEvent } from 'aws-lambda';
import type { z } from 'zod';
import type { Issue } from '../../spec/issue';

/** Parses the properties of a custom resource. Throws one line that names each invalid property. */
export function parseProperties<T extends z.ZodType>(schema: T, event: CdkCustomResourceEvent): z.output<T> {
  const parsed = schema.safeParse(event.ResourceProperties, { reportInput: true });
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  throw new Error(`${event.ResourceType} ${event.LogicalResourceId}: ${lines.join('; ')}`);
}

/** Reports warnings, and throws all errors at once. */
export function refuseErrors(issues: readonly Issue[], warn: (message: string) => void): void {
  for (const { level, message } of issues) if (level !== 'error') warn(message);
  const errors = issues.filter(({ level }) => level === 'error');
  if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join('\n'));
}

/**
 * Wraps a handler so that its errors end with the log group that has the details. Lambda provides its name in the environment; the line
 * that the CDK's provider framework appends (`Logs: /aws/lambda/...`) names a group that is not used.
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
