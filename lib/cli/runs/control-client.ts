import { setTimeout as sleep } from 'node:timers/promises';
import { LambdaClient } from '@aws-sdk/client-lambda';
import type { Descriptor } from '../../core/config/descriptor';
import { parseJson } from '../../core/config/formats/json';
import type {
  ControlAnswer,
  ControlPayload,
  ListRequest,
  Refusal as RefusalAnswer,
  StatusAnswer,
} from '../../core/contracts/control';
import type { Read } from '../../report/read/assemble';
import { invokeControl, isAuditable } from '../../shared/aws/control';
import { awsClient } from '../aws-client';
import { calling, hasNoCredentials, isDenied } from '../aws-errors';
import { Refusal, ServiceError, UsageError } from '../exit';

type Answer<T> = Exclude<T, RefusalAnswer>;

/**
 * Invokes the control alias of the team or, for read requests of a caller without that permission, the alias for auditors. Throws refusals
 * with their issues, and errors of the function.
 */
export async function callControl<T extends ControlAnswer>(
  descriptor: Descriptor,
  payload: ControlPayload,
): Promise<Answer<T>> {
  const alias = descriptor.controlAliasArn;
  if (!alias)
    throw new UsageError(
      `--environment: must have a launcher, got environment ${descriptor.name} without controlAliasArn; deploy it with one`,
    );
  const lambda = awsClient(LambdaClient, { region: descriptor.region });
  const invoked = await calling(`calling the launcher of ${descriptor.name}/${descriptor.team}`, () =>
    invokeAsCaller(lambda, descriptor, alias, payload),
  );
  if ('functionError' in invoked)
    throw new ServiceError(
      `the launcher of ${descriptor.name}: failed, got ${errorMessage(invoked.functionError)}; see its log`,
    );
  const body = invoked.answer;
  // What the service could not do now is no refusal of the request.
  if (!body.ok && body.issues.some(({ rule }) => rule === 'logs/throttled'))
    throw new ServiceError(body.issues.map(({ message }) => message).join('\n'));
  if (!body.ok) throw new Refusal(body.issues, body.quota ? { quota: body.quota } : {});
  return body as Answer<T>;
}

/** Number of failed calls in a row after which a verb that follows runs gives up; the runs continue. */
const PATIENCE = 10;

interface Pace {
  seconds: number;
  /** The prefix of the error, such as `waiting for r-1`. */
  what: string;
  /** The last part of the error. */
  advice: string;
}

/** Repeats a call while the service fails. */
export async function patiently<T>(call: () => Promise<T>, { seconds, what, advice }: Pace): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      // They do not come back without the person who waits.
      if (hasNoCredentials(error.cause)) throw new ServiceError(`${what}: ${error.message}; ${advice}`);
      if (failures === PATIENCE)
        throw new ServiceError(`${what}: ${PATIENCE} calls in a row failed, the last with ${error.message}; ${advice}`);
    }
    await sleep(1000 * seconds);
  }
}

/** Calls `observe` until it returns true. A failure of the first call is final: it is the caller's, not that of a moment. */
export async function repeat(observe: () => Promise<boolean>, pace: Pace): Promise<void> {
  for (let isDone = await observe(); !isDone; isDone = await patiently(observe, pace)) await sleep(1000 * pace.seconds);
}

/** Control aliases that this process may not invoke: later requests go directly to the alias for auditors. */
const deniedAliases = new Set<string>();

async function invokeAsCaller(
  lambda: LambdaClient,
  { auditAliasArn }: Descriptor,
  alias: string,
  payload: ControlPayload,
) {
  const audit = auditAliasArn !== undefined && isAuditable(payload) ? auditAliasArn : undefined;
  if (audit && deniedAliases.has(alias)) return invokeControl(lambda, audit, payload);
  try {
    return await invokeControl(lambda, alias, payload);
  } catch (denied) {
    if (!audit || !isDenied(denied)) throw denied;
    try {
      const invoked = await invokeControl(lambda, audit, payload);
      deniedAliases.add(alias);
      return invoked;
    } catch (error) {
      // A caller who may use neither alias needs the permission to launch, so the message names the control alias.
      throw isDenied(error) ? denied : error;
    }
  }
}

const errorMessage = (text: string): string =>
  (parseJson(text) as { errorMessage?: string } | null | undefined)?.errorMessage ?? text;

/** Control's answer to `status` when it is not a refusal. */
type Status = { ok: true } & StatusAnswer;

/**
 * The status of a run.
 * @param wanted parts that the answer otherwise omits
 */
export const readStatus = (
  descriptor: Descriptor,
  runId: string,
  wanted: { timeline?: true; configuration?: true } = {},
): Promise<Status> => callControl<Status>(descriptor, { action: 'status', runId, ...wanted });

/** The part of an answer that `--json` prints. */
export function withoutOk<T extends { ok: true }>({ ok: _ok, ...rest }: T): Omit<T, 'ok'> {
  return rest;
}

/** Reads a source that may fail on its own. Only expected errors of a call are caught, so that programming errors still surface. */
export async function attempt<T>(read: () => Promise<T>): Promise<Read<T>> {
  try {
    return { value: await read() };
  } catch (error) {
    if (error instanceof ServiceError) return { why: error.message };
    if (error instanceof Refusal) return { why: error.issues.map(({ message }) => message).join('; ') };
    throw error;
  }
}

/** Maximum number of runs that the control function lists at once. */
export const MAX_RUNS = 200;

/**
 * The runs of a team, newest first, each with only its newest attempt.
 * @param wanted how many, and which. @default - the default of the control function
 */
export async function readRuns(
  descriptor: Descriptor,
  wanted: Partial<Omit<ListRequest, 'action'>> = {},
): Promise<StatusAnswer[]> {
  const { runs } = await callControl<{ ok: true; runs: StatusAnswer[] }>(descriptor, { action: 'list', ...wanted });
  return runs;
}
