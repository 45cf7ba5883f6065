import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { CreateRoleCommand, IAMClient } from '@aws-sdk/client-iam';
import { CreateTrainingJobCommand, SageMakerClient } from '@aws-sdk/client-sagemaker';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sandboxStatus, startDetached } from '../../lib/sandbox/daemon';
import { isAlive, processesMarked, sendSignal } from '../../lib/sandbox/processes';
import {
  type RunRecord,
  readOwner,
  readRunRecord,
  SANDBOX_MARKER,
  stopSandbox,
  temporaryRoot,
} from '../../lib/sandbox/run-file';
import { eventually, startSandbox } from '../../lib/sandbox/testing';
import { bashJob, clientOptions, temporaryFolder, VENV } from './support';

const SERVE = path.join(__dirname, 'programs', 'serve.ts');
let folder: string;

beforeEach(() => {
  folder = temporaryFolder();
});

afterEach(async () => {
  await stopSandbox(folder);
  rmSync(folder, { recursive: true, force: true });
});

const COMMAND: [string, ...string[]] = [process.execPath, '--import', 'tsx', SERVE];
const start = () => startDetached(folder, [...COMMAND, folder, VENV]);

/** Processes that serve the folder of this test, MiniStack included. */
const servers = () =>
  readdirSync('/proc').filter((entry) => {
    if (!/^\d+$/.test(entry)) return false;
    try {
      const { pid } = process;
      const words = readFileSync(`/proc/${entry}/cmdline`, 'utf8') + readFileSync(`/proc/${entry}/environ`, 'utf8');
      return Number(entry) !== pid && words.includes(folder);
    } catch {
      return false;
    }
  });

/** A job of two instances whose workers have left the process group. */
async function longJob(record: RunRecord): Promise<void> {
  const options = (endpoint: string) => clientOptions({ env: record.env }, endpoint);
  const trust = {
    Statement: [{ Effect: 'Allow', Principal: { Service: 'sagemaker.amazonaws.com' }, Action: 'sts:AssumeRole' }],
  };
  const role = new CreateRoleCommand({ RoleName: 'trainer', AssumeRolePolicyDocument: JSON.stringify(trust) });
  const { Role } = await new IAMClient(options(record.endpoints.aws)).send(role);
  const request = bashJob({ roleArn: Role?.Arn ?? '' }, 'long', 'setsid sleep 600 & sleep 600', 2);
  await new SageMakerClient(options(record.endpoints.sagemaker)).send(new CreateTrainingJobCommand(request));
  await eventually(() => jobProcesses() >= 4);
}

const jobProcesses = () => processesMarked(SANDBOX_MARKER, folder).length;

test('a detached sandbox is found by its state folder, refuses a second start, and stops with all its processes', async () => {
  const record = await start();
  await longJob(record);

  expect(sandboxStatus(folder)).toMatchObject({ endpoints: record.endpoints, auth: false });
  await expect(start()).rejects.toThrow(`must not run already in ${folder}, got process ${record.owner.pid}`);
  await expect(startSandbox({ stateDir: folder, venvDir: VENV })).rejects.toThrow('must not run already');
  expect(await stopSandbox(folder)).toBe(true);

  expect([isAlive(record.owner), isAlive(record.ministack), jobProcesses()]).toEqual([false, false, 0]);
  expect(sandboxStatus(folder)).toBeUndefined();
  expect(existsSync(temporaryRoot(folder))).toBe(false);
  expect(await stopSandbox(folder)).toBe(false);
});

test('of several starts at once one runs, and the others name it', async () => {
  const outcomes = await Promise.allSettled(Array.from({ length: 4 }, () => start()));
  const { owner } = readRunRecord(folder) ?? {};
  expect(outcomes.filter(({ status }) => status === 'fulfilled').map((one) => one.status)).toEqual(['fulfilled']);
  for (const one of outcomes.filter(({ status }) => status === 'rejected'))
    expect(String((one as PromiseRejectedResult).reason)).toContain(
      `must not run already in ${folder}, got process ${owner?.pid}`,
    );
  expect(await stopSandbox(folder)).toBe(true);
  expect(servers()).toEqual([]);
});

test.each([300, 900, 2000])('a start that is interrupted after %i ms leaves nothing', async (milliseconds) => {
  const interrupted = new AbortController();
  const starting = startDetached(folder, [...COMMAND, folder, VENV], interrupted.signal);
  const waited = setTimeout(() => interrupted.abort(), milliseconds);
  const ended = await starting.then(
    () => 'started',
    (error: Error) => error.message,
  );
  clearTimeout(waited);
  expect(['started', `sandbox: the start was interrupted; nothing runs in ${folder}`]).toContain(ended);
  if (ended === 'started') expect(await stopSandbox(folder)).toBe(true);
  expect(servers()).toEqual([]);
  expect(await stopSandbox(folder)).toBe(false);
});

test('stop ends a sandbox that is still starting', async () => {
  const starting = start().catch((error: Error) => error.message);
  await eventually(() => readOwner(folder) !== undefined);
  expect(await stopSandbox(folder)).toBe(true);
  await starting;
  expect(servers()).toEqual([]);
});

test('fails: a folder in which nothing can be made', async () => {
  await expect(startDetached('/proc/slipway/x', COMMAND)).rejects.toThrow(
    'sandbox: must be able to write /proc/slipway/x, got ENOENT; set another folder with --state-dir',
  );
});

test('a killed sandbox takes its jobs and MiniStack with it, and the next start goes through', async () => {
  const record = await start();
  await longJob(record);

  sendSignal(record.owner.pid, 'SIGKILL');
  await eventually(() => !isAlive(record.ministack) && jobProcesses() === 0, { timeoutSeconds: 10 });
  expect(sandboxStatus(folder)).toBeUndefined();
  const sandbox = await startSandbox({ stateDir: folder, venvDir: VENV });
  await sandbox.stop();

  expect(existsSync(path.join(folder, 'sandbox.json'))).toBe(false);
});

test('what outlives both, the next start ends', async () => {
  const record = await start();
  await longJob(record);

  sendSignal(record.ministack.pid, 'SIGSTOP');
  sendSignal(record.owner.pid, 'SIGKILL');
  await eventually(() => !isAlive(record.owner));
  expect([isAlive(record.ministack), jobProcesses() >= 4]).toEqual([true, true]);
  const sandbox = await startSandbox({ stateDir: folder, venvDir: VENV });
  await sandbox.stop();

  expect([isAlive(record.ministack), jobProcesses()]).toEqual([false, 0]);
});

test('fails: a start that cannot work says why and leaves nothing', async () => {
  const missing = path.join(folder, 'no-python');

  await expect(startSandbox({ stateDir: folder, venvDir: path.join(folder, 'venv'), python: missing })).rejects.toThrow(
    /^sandbox: MiniStack 1\.5\.33 must be installable with .*no-python, got .*; check Python 3\.10\+/,
  );
  await expect(startDetached(folder, [process.execPath, '-e', 'throw new Error("broken")'])).rejects.toThrow(/broken/);
  expect(sandboxStatus(folder)).toBeUndefined();
});
