import { rm } from 'node:fs/promises';
import path from 'node:path';
import { Authority, AwsAccess } from './access/authority';
import { openCredentialEndpoint } from './access/credential-endpoint';
import { ADMIN_PREFIX, adminHandler } from './admin';
import { apiHandler } from './api-server';
import { clientEnv, containerEnv, endpointEnv } from './environment';
import { FaultPlan } from './faults/fault-plan';
import type { JobHost } from './jobs/attempt';
import { DEFAULT_TIME_SCALE, type TimeScale } from './jobs/job-run';
import { type Certificate, ensureCertificate } from './ministack/certificate';
import { type MiniStack, startMiniStack } from './ministack/ministack';
import { ensureVenv, MINISTACK_VERSION, type Progress, type Venv } from './ministack/venv';
import { processRef } from './processes';
import { QuotaStore } from './quotas/quota-store';
import { IncreaseRequests, quotaOperations } from './quotas/service-quotas';
import {
  claimFolder,
  removeRunRecord,
  SANDBOX_MARKER,
  sandboxesFolder,
  stateFolder,
  temporaryRoot,
  writeRunRecord,
} from './run-file';
import { SageMaker } from './sagemaker/sagemaker';
import { loadServiceModel } from './wire/api-call';
import { type Handler, type HttpServer, listen } from './wire/http-server';

export interface SandboxOptions {
  /**
   * Folder of everything the sandbox writes.
   * @default - one for the working folder, below ~/.local/state/slipway (XDG_STATE_HOME)
   */
  stateDir?: string;
  /** Virtual environment of MiniStack; created if it does not exist. @default - one for all sandboxes of this person */
  venvDir?: string;
  /** Interpreter that creates the virtual environment, 3.10 or newer. @default python3 */
  python?: string;
  /**
   * Interpreter whose folder comes first on the PATH of jobs, for example of an environment with torch.
   * @default - the machine's python3
   */
  pythonBin?: string;
  /**
   * Enforce IAM and signatures, over TLS with a self-signed certificate.
   * @default false
   */
  auth?: boolean;
  /**
   * AWS rules that the sandbox normally adds to MiniStack and that are disabled here, by name (docs/emulator.md). @default - all rules
   * apply
   */
  rulesOff?: 'all' | readonly string[];
  /**
   * File to which every distinct IAM decision on a call is appended as a line of JSON: principal, action, resource, decision, and the Sid
   * of the statement. Without `auth` there are no decisions. @default - nothing is written
   */
  decisionsFile?: string;
  /** Additional environment variables of MiniStack's process, which its Lambda functions inherit. @default - none */
  ministackEnv?: Record<string, string>;
  /** @default 000000000000 */
  accountId?: string;
  /**
   * Region of the clients' environment.
   * @default us-east-1
   */
  region?: string;
  /** Applied quotas by code, in every Region. @default - four instances of each CPU type, none of accelerated ones, AWS's default totals */
  quotas?: Record<string, number>;
  /** @default - DEFAULT_TIME_SCALE */
  time?: Partial<TimeScale>;
  /** @default - no progress messages */
  progress?: Progress;
}

export interface Sandbox {
  endpoints: { aws: string; sagemaker: string; serviceQuotas: string };
  /** Environment of an AWS client that should use only the sandbox. */
  env: Record<string, string>;
  stateDir: string;
  /** Ends jobs, services and MiniStack; no process keeps running. */
  stop(): Promise<void>;
}

/** Starts the embedded AWS: MiniStack, and our SageMaker and Service Quotas services beside it. */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const settings = withDefaults(options);
  const { stateDir, progress } = settings;
  claimFolder(stateDir);
  const undo: Undo = [() => removeRunRecord(stateDir)];
  try {
    const venv = await ensureVenv(settings.venvDir, settings.python, progress);
    const certificate = settings.auth ? await ensureCertificate(path.join(stateDir, 'tls')) : undefined;
    progress('starting the SageMaker and Service Quotas services');
    return await build({ settings, venv, certificate, undo });
  } catch (error) {
    await undone(undo);
    throw error;
  }
}

type Settings = ReturnType<typeof withDefaults>;

function withDefaults(options: SandboxOptions) {
  const stateDir = stateFolder(options.stateDir);
  return {
    ...options,
    stateDir,
    venvDir: path.resolve(options.venvDir ?? path.join(sandboxesFolder(), `ministack-${MINISTACK_VERSION}`)),
    python: options.python ?? 'python3',
    auth: options.auth ?? false,
    accountId: options.accountId ?? '000000000000',
    region: options.region ?? 'us-east-1',
    time: { ...DEFAULT_TIME_SCALE, ...options.time },
    progress: options.progress ?? (() => {}),
  };
}

/** Undo actions of everything that was started so far, run in reverse order. */
type Undo = (() => Promise<void> | void)[];

async function undone(undo: Undo): Promise<void> {
  for (const step of undo.splice(0).reverse()) await step();
}

/** The components that every part of a sandbox uses. */
interface Parts {
  settings: Settings;
  venv: Venv;
  certificate?: Certificate;
  undo: Undo;
}

async function build(parts: Parts) {
  const { settings, venv, certificate, undo } = parts;
  // The services listen before MiniStack starts, because its Lambda functions inherit their address; they answer after it has started.
  const services: { handle?: Handler } = {};
  const server = await listen(
    async (request, body) => services.handle?.(request, body) ?? { status: 503, body: { message: 'starting' } },
    certificate,
  );
  undo.push(() => server.close());
  settings.progress('starting MiniStack');
  const ministack = await startMiniStack({
    venv,
    folder: path.join(settings.stateDir, 'ministack'),
    accountId: settings.accountId,
    rulesOff: settings.rulesOff,
    decisionsFile: settings.decisionsFile && path.resolve(settings.decisionsFile),
    certificate,
    jobMarker: `${SANDBOX_MARKER}=${settings.stateDir}`,
    lambdaEnv: { ...settings.ministackEnv, ...endpointEnv(server.url) },
  });
  undo.push(() => ministack.hook.close());
  undo.push(() => ministack.stop());
  services.handle = await openServices({ ...parts, ministack, server });
  const endpoints = { aws: ministack.endpoint, sagemaker: server.url, serviceQuotas: server.url };
  const env = clientEnv({ ...settings, aws: ministack.endpoint, services: server.url, certificate });
  const { stateDir, auth } = settings;
  const processes = { owner: processRef(process.pid), ministack: processRef(ministack.pid) };
  writeRunRecord(stateDir, { ...processes, endpoints, env, auth, startedAt: new Date().toISOString() });
  return { endpoints, env, stateDir, stop: () => undone(undo) };
}

/** The parts once MiniStack runs and our server listens. */
interface RunningParts extends Parts {
  ministack: MiniStack;
  server: HttpServer;
}

async function openServices(parts: RunningParts): Promise<Handler> {
  const { settings, venv, ministack, undo } = parts;
  const faults = new FaultPlan();
  const quotas = new QuotaStore(settings.quotas);
  const increases = new IncreaseRequests(quotas);
  const authority = new Authority(ministack.hook, settings.auth);
  const host = await openJobHost(parts);
  const sagemaker = new SageMaker({ quotas, authority, faults, host, time: settings.time, hook: ministack.hook });
  undo.push(() => sagemaker.shutdown());
  const services = {
    SageMaker: {
      model: loadServiceModel(venv.botocoreData, 'sagemaker'),
      operations: sagemaker.operations,
      tagsOf: sagemaker.tagsOf,
    },
    ServiceQuotasV20190624: {
      model: loadServiceModel(venv.botocoreData, 'service-quotas'),
      operations: quotaOperations(quotas, increases),
    },
  };
  const api = apiHandler(services, authority, faults);
  const admin = adminHandler({ faults, hook: ministack.hook, quotas, increases, accountId: settings.accountId });
  return (request, body) => (request.url?.startsWith(ADMIN_PREFIX) ? admin : api)(request, body);
}

async function openJobHost({ settings, certificate, undo, ministack, server }: RunningParts): Promise<JobHost> {
  const aws = new AwsAccess(ministack.endpoint, ministack.hook, certificate?.certFile);
  undo.push(() => aws.close());
  const temporaryFolder = temporaryRoot(settings.stateDir);
  undo.push(() => rm(temporaryFolder, { recursive: true, force: true }));
  const credentialEndpoint = await openCredentialEndpoint();
  undo.push(() => credentialEndpoint.close());
  const places = { aws: ministack.endpoint, services: server.url, certificate };
  return {
    aws,
    credentialEndpoint,
    jobsFolder: path.join(settings.stateDir, 'jobs'),
    temporaryFolder,
    fileSystemsFolder: path.join(settings.stateDir, 'filesystems'),
    containerEnv: {
      ...containerEnv({ ...places, pythonBin: settings.pythonBin }),
      [SANDBOX_MARKER]: settings.stateDir,
    },
  };
}
