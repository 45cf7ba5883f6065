import { CloudFormationClient, DescribeStacksCommand } from '@aws-sdk/client-cloudformation';
import type { CdkCustomResourceEvent, CdkCustomResourceResponse } from 'aws-lambda';
import type { z } from 'zod';
import type { Issue } from '../../core/config/issue';
import { clientSettings } from './clients';

/** Parses the properties of a custom resource. Throws one line that names each invalid property. */
export function parseProperties<T extends z.ZodType>(schema: T, event: CdkCustomResourceEvent): z.output<T> {
  const parsed = schema.safeParse(event.ResourceProperties, { reportInput: true });
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  throw new Error(`${event.ResourceType} ${event.LogicalResourceId}: ${lines.join('; ')}`);
}

/** A handler that acts on creation and update; a deletion leaves everything as it is. */
export const whileItExists =
  <Deps, T extends z.ZodType>(
    schema: T,
    apply: (deps: Deps, properties: z.output<T>, event: CdkCustomResourceEvent) => Promise<CdkCustomResourceResponse>,
  ) =>
  async (deps: Deps, event: CdkCustomResourceEvent): Promise<CdkCustomResourceResponse> =>
    event.RequestType === 'Delete'
      ? { PhysicalResourceId: event.PhysicalResourceId }
      : apply(deps, parseProperties(schema, event), event);

/** Reports warnings, and throws all errors at once. */
export function refuseErrors(issues: readonly Issue[], warn: (message: string) => void): void {
  for (const { level, message } of issues) if (level !== 'error') warn(message);
  const errors = issues.filter(({ level }) => level === 'error');
  if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join('\n'));
}

/**
 * Bytes of a message as JSON. CloudFormation accepts 4,096 for the whole response: it contains the message with the ids of stack, request and
 * resource, a line of the CDK's provider framework, and the first line once more.
 * https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/crpg-ref-responses.html, 2026-11-26.
 */
const MESSAGE_BYTES = 2_500;
const FIRST_LINE_BYTES = 500;

/**
 * Wraps a handler so that its errors are a message for people: as much of it as CloudFormation accepts, then the log group that has the
 * rest. Lambda provides its name in the environment; the line that the CDK's provider framework appends (`Logs: /aws/lambda/...`) names a
 * group that is not used. The framework also appends the stack trace, whose place the first line takes.
 */
export function pointingToLog<A extends unknown[], T>(handle: (...args: A) => Promise<T>): (...args: A) => Promise<T> {
  return async (...args) => {
    try {
      return await handle(...args);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      console.error(error.stack);
      const group = process.env.AWS_LAMBDA_LOG_GROUP_NAME;
      const [first = ''] = error.message.split('\n');
      error.message = cut(error.message, MESSAGE_BYTES) + (group ? `; its log is in log group ${group}` : '');
      error.stack = `${error.name}\n${cut(first, FIRST_LINE_BYTES)}`;
      throw error;
    }
  };
}

/** The beginning of a text, as whole lines where there are several. */
function cut(text: string, bytes: number): string {
  const fits = (part: string) => Buffer.byteLength(JSON.stringify(part)) <= bytes;
  if (fits(text)) return text;
  const lines = text.split('\n');
  const kept = lines.findIndex((_, i) => !fits(lines.slice(0, i + 1).join('\n')));
  if (kept > 0) return `${lines.slice(0, kept).join('\n')}\nand ${lines.length - kept} more in the log`;
  const letters = [...(lines[0] ?? '')];
  let end = letters.length;
  while (end > 0 && !fits(letters.slice(0, end).join(''))) end = Math.floor(end * 0.9);
  return `${letters.slice(0, end).join('')}...`;
}

/**
 * Wraps a handler that can refuse an update, so that it refuses no rollback: CloudFormation sends the deployed properties again as another
 * update, and a stack whose rollback fails needs `continue-update-rollback`.
 * @param accept the response to a rollback that would be refused; @default - the resource stays as it is
 */
export function acceptingRollback(
  handle: (event: CdkCustomResourceEvent) => Promise<CdkCustomResourceResponse>,
  accept: (event: CdkCustomResourceEvent) => CdkCustomResourceResponse = withId({}),
): (event: CdkCustomResourceEvent) => Promise<CdkCustomResourceResponse> {
  return async (event) => {
    try {
      return await handle(event);
    } catch (error) {
      if (!(await isRollback(event))) throw error;
      console.error(`accepted, because the update is rolled back: ${(error as Error).message}`);
      return accept(event);
    }
  };
}

/** Whether CloudFormation returns a stack to its deployed state. */
export async function isRollback({ RequestType, StackId }: CdkCustomResourceEvent): Promise<boolean> {
  if (RequestType !== 'Update') return false;
  // Without an answer the refusal is what people need to read.
  const status = await stackStatus(new CloudFormationClient(clientSettings), StackId).catch(() => 'unknown');
  return status.startsWith('UPDATE_ROLLBACK_');
}

/**
 * An entry point whose clients are made at its first event, and whose errors name the log.
 * @param wrap `acceptingRollback` for a custom resource that may refuse an update
 */
export function entryPoint<Deps, Event, Answer>(
  makeDeps: () => Deps,
  handle: (deps: Deps, event: Event) => Promise<Answer>,
  wrap: (handle: (event: Event) => Promise<Answer>) => (event: Event) => Promise<Answer> = (unwrapped) => unwrapped,
): (event: Event) => Promise<Answer> {
  let deps: Deps | undefined;
  return pointingToLog(
    wrap((event) => {
      deps ??= makeDeps();
      return handle(deps, event);
    }),
  );
}

/** The response of a resource that stays, with the attributes to which the template refers. */
export const withId =
  (Data: Record<string, string>) =>
  (event: CdkCustomResourceEvent): CdkCustomResourceResponse => ({
    PhysicalResourceId: event.RequestType === 'Create' ? undefined : event.PhysicalResourceId,
    Data,
  });

/** Status of a stack, such as `ROLLBACK_IN_PROGRESS`. */
export async function stackStatus(cloudFormation: CloudFormationClient, StackName: string): Promise<string> {
  const { Stacks } = await cloudFormation.send(new DescribeStacksCommand({ StackName }));
  return Stacks?.[0]?.StackStatus ?? 'unknown';
}

/** Whether a service error has one of these names. */
export const isNamed = (error: unknown, ...names: string[]): boolean => names.includes((error as Error)?.name);
