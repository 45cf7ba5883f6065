import { spawn, spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { SSMClient } from '@aws-sdk/client-ssm';
import { issue } from '../../core/config/issue';
import type { ShellAnswer } from '../../core/contracts/control';
import { awsClient } from '../aws-client';
import { findDescriptor } from '../environment/environment';
import { EXIT, Refusal, ServiceError, UsageError } from '../exit';
import type { CommonOptions } from '../inputs';
import type { Terminal } from '../terminal';
import { callControl } from './control-client';
import { hostNumber } from './logs/job-logs';
import { pollSeconds } from './wait';

/**
 * The AWS CLI starts it in the same way:
 * https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html
 */
const PLUGIN = 'session-manager-plugin';
/** Name of the variable that contains the answer of StartSession: process arguments can be read by others on the machine. */
const RESPONSE = 'AWS_SSM_START_SESSION_RESPONSE';
/** The last version that accepts the answer only as an argument (awscli, customizations/sessionmanager.py). */
const LAST_WITHOUT_VARIABLE = '1.2.497.0';
const INSTALL =
  'https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html';

/** Seconds between two tries while the agent of the host connects, and the number of tries. */
const TRY_SECONDS = 5;
const TRIES = 36;

/** `slipway shell RUN [-- COMMAND]`: opens a shell in a container of a live job. */
export async function shell(
  runId: string,
  command: readonly string[],
  options: CommonOptions & { node?: string },
  terminal: Terminal,
): Promise<number> {
  const host = hostNumber(options.node ?? '1');
  if (options.json)
    throw new UsageError('--json: must not be given to shell, which prints the output of the container; omit it');
  requirePlugin();
  const descriptor = await findDescriptor(options);
  const payload = { action: 'shell' as const, runId, host, ...(command.length > 0 && { command: command.join(' ') }) };
  for (let tries = 0; tries < TRIES; tries++) {
    const answer = await callControl<ShellAnswer>(descriptor, payload);
    if (answer.session) return runPlugin(answer, descriptor.region);
    if (tries === 0) terminal.err(`waiting until algo-${host} of ${answer.trainingJobName} accepts sessions`);
    await sleep(1000 * pollSeconds(TRY_SECONDS));
  }
  throw new ServiceError(
    `${runId}: must have a host that is connected to Session Manager, got none after ${(TRIES * TRY_SECONDS) / 60} minutes; ` +
      `see the log streams that end with /ssm of the job`,
  );
}

/** The plugin must be installed, and new enough to accept the session's token in a variable. */
function requirePlugin(): void {
  const { error, stdout } = spawnSync(PLUGIN, ['--version'], { encoding: 'utf8' });
  const version = error ? undefined : stdout.trim();
  if (version !== undefined && isNewer(version, LAST_WITHOUT_VARIABLE)) return;
  throw new Refusal([
    issue('shell/plugin', 'error', PLUGIN, {
      must: `must be installed, newer than ${LAST_WITHOUT_VARIABLE}`,
      got: version ?? 'no such program on the PATH',
      fix: `install it as described in ${INSTALL}`,
    }),
  ]);
}

/** Whether one dotted version number is greater than another. A text that is not a version is not. */
export function isNewer(version: string, than: string): boolean {
  if (!/^\d+(\.\d+){0,3}$/.test(version)) return false;
  const [a, b] = [version, than].map((text) => text.split('.').map(Number)) as [number[], number[]];
  const at = b.findIndex((part, i) => part !== (a[i] ?? 0));
  return at !== -1 && (a[at] ?? 0) > (b[at] ?? 0);
}

/** Passes the terminal and the session to the plugin. Ctrl-C is for the program in the container. */
async function runPlugin({ session, request }: ShellAnswer, region: string): Promise<number> {
  const { url } = await awsClient(SSMClient, { region }).config.endpointProvider({ Region: region });
  const profile = process.env.AWS_PROFILE ?? '';
  const args = [RESPONSE, region, 'StartSession', profile, JSON.stringify(request), url.origin];
  const ignore = () => undefined;
  process.on('SIGINT', ignore);
  try {
    return await new Promise((resolve, reject) => {
      const env = { ...process.env, [RESPONSE]: JSON.stringify(session) };
      const plugin = spawn(PLUGIN, args, { stdio: 'inherit', env });
      plugin.once('error', reject);
      plugin.once('exit', (code) => resolve(code === 0 ? EXIT.done : EXIT.service));
    });
  } finally {
    process.off('SIGINT', ignore);
  }
}
