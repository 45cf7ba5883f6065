import { existsSync } from 'node:fs';
import path from 'node:path';
import { sandboxStatus, serveSandbox, startDetached } from '../../sandbox/daemon';
import { clientEnv, UNSET_FOR_CLIENTS } from '../../sandbox/environment';
import { type RunRecord, requireNotRunning, stateFolder, stopSandbox } from '../../sandbox/run-file';
import { embeddedEndpoint } from '../../shared/environment/embedded-endpoint';
import { EXIT, ServiceError, UsageError } from '../exit';
import { interruptible, json, quoted, type Terminal } from '../terminal';

interface SandboxOptions {
  stateDir?: string;
  python?: string;
  auth?: boolean;
  json?: boolean;
  region?: string;
  unset?: boolean;
  raiseQuotas?: boolean;
}

/** `slipway sandbox start|env|deploy|status|stop`; `start` runs `serve` in a separate process. */
export async function sandbox(
  action: string,
  file: string | undefined,
  options: SandboxOptions,
  terminal: Terminal,
): Promise<number> {
  if (file !== undefined && action !== 'deploy')
    throw new UsageError(`sandbox ${action}: must have no file, got ${file}; omit it`);
  const stateDir = stateFolder(options.stateDir);
  switch (action) {
    case 'start':
      return start(stateDir, options, terminal);
    case 'stop':
      return stop(stateDir, options, terminal);
    case 'status':
      return status(stateDir, options, terminal);
    case 'env':
      if (!options.unset || options.json) return printVariables(requireRunning(stateDir), {}, options, terminal);
      terminal.out(unsetLines(sandboxStatus(stateDir)?.env ?? endedEnv(stateDir)).join('\n'));
      return EXIT.done;
    case 'deploy': {
      const { deployIntoSandbox } = await import('./deploy.js');
      return deployIntoSandbox(file, { record: requireRunning(stateDir), stateDir }, options, terminal);
    }
    case 'serve':
      await serveSandbox({
        stateDir,
        pythonBin: options.python,
        auth: options.auth,
        region: options.region,
      }).catch(failed);
      return EXIT.done;
    default:
      throw new UsageError(`sandbox: must be start, env, deploy, status or stop, got ${action}; use one of them`);
  }
}

async function start(stateDir: string, options: SandboxOptions, terminal: Terminal): Promise<number> {
  requireFree(stateDir);
  if (options.python && !existsSync(options.python))
    throw new UsageError(`--python: must be the path of an interpreter, got ${options.python}; correct it, or omit it`);
  const flags = [
    ...(options.python ? ['--python', path.resolve(options.python)] : []),
    ...(options.auth ? ['--auth'] : []),
    ...(options.region ? ['--region', options.region] : []),
  ];
  terminal.err('starting the AWS emulator (the first start installs MiniStack)');
  const command: [string, ...string[]] = [
    process.execPath,
    process.argv[1] ?? '',
    'sandbox',
    'serve',
    '--state-dir',
    stateDir,
    ...flags,
  ];
  const starting = (interrupted: AbortSignal) =>
    startDetached(stateDir, command, interrupted).catch((error: Error) => {
      if (!interrupted.aborted) return failed(error);
      terminal.err(`interrupted; nothing runs in ${stateDir}`);
      return undefined;
    });
  const record = await interruptible(() => undefined, starting);
  if (!record) return EXIT.interrupted;
  return printVariables(record, { pid: record.owner.pid }, options, terminal);
}

function requireFree(stateDir: string): void {
  try {
    requireNotRunning(stateDir);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** The embedded AWS explains in a sentence why it does not start: a port, a folder, Python, a download. */
function failed(error: Error): never {
  throw new ServiceError(error.message);
}

/** Prints the variables for a terminal: `eval "$(slipway sandbox env)"`. */
function printVariables({ env, endpoints }: RunRecord, more: object, options: SandboxOptions, terminal: Terminal) {
  const document = { endpoints, env, unset: unsetForeign(env), ...more };
  terminal.out(options.json ? json(document) : exportLines(env).join('\n'));
  return EXIT.done;
}

/** The variables that a shell has of a sandbox that has ended, without values: none where its own point to AWS. */
function endedEnv(stateDir: string): RunRecord['env'] {
  if (!embeddedEndpoint()) return {};
  const hasCertificate = process.env.AWS_CA_BUNDLE?.startsWith(stateDir) ?? false;
  const certificate = hasCertificate ? { certFile: '', bundleFile: '' } : undefined;
  return clientEnv({ aws: '', services: '', region: '', accountId: '', certificate });
}

function requireRunning(stateDir: string): RunRecord {
  const record = sandboxStatus(stateDir);
  if (record) return record;
  throw new UsageError(
    `sandbox: must run in ${stateDir}, got nothing there; start it with slipway sandbox start, or set its folder with --state-dir`,
  );
}

async function stop(stateDir: string, options: SandboxOptions, terminal: Terminal): Promise<number> {
  const stopped = await stopSandbox(stateDir);
  if (options.json) terminal.out(json({ stopped }));
  else terminal.err(stopped ? 'stopped; its environments and runs are gone' : 'was not running');
  return EXIT.done;
}

function status(stateDir: string, options: SandboxOptions, terminal: Terminal): number {
  const record = sandboxStatus(stateDir);
  const answer = {
    running: record !== undefined,
    ...(record && { endpoints: record.endpoints, env: record.env, pid: record.owner.pid, startedAt: record.startedAt }),
  };
  const text = record
    ? `running since ${record.startedAt}, process ${record.owner.pid}: ${Object.values(record.endpoints).join(' ')}`
    : 'not running';
  terminal.out(options.json ? json(answer) : text);
  return EXIT.done;
}

/** Shell lines for `eval` that direct a shell to the embedded AWS. Variables that would take precedence over its credentials are unset. */
export function exportLines(env: Readonly<Record<string, string>>): string[] {
  return [
    ...unsetForeign(env).map((name) => `unset ${name}`),
    ...Object.entries(env).map(([name, value]) => `export ${name}=${quoted(value)}`),
  ];
}

/** Shell lines that remove every variable of the embedded AWS from a shell. */
export const unsetLines = (env: Readonly<Record<string, string>>): string[] =>
  Object.keys(env).map((name) => `unset ${name}`);

/** Unsets variables that must not be set together with these. */
export const unsetForeign = (env: Readonly<Record<string, string>>): string[] =>
  UNSET_FOR_CLIENTS.filter((name) => !(name in env));
