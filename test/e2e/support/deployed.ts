import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import path from 'node:path';
import type { SandboxOptions } from '../../../lib/sandbox/testing';
import { type Outcome, ROOT, type TestSandbox, testSandbox } from './sandbox';

const CDK = path.join(ROOT, 'node_modules/.bin/cdk');
const CLI = path.join(ROOT, 'dist/cli/slipway.mjs');

export interface Deployed extends TestSandbox {
  cdk(...args: string[]): Promise<string>;
  /** Synthesis and deploy of the files as they are now. */
  deployAgain(): Promise<void>;
  /** The command line as users call it; answers stdout. */
  slipway(...args: string[]): Promise<string>;
  /** The same with credentials of somebody else; any exit code. */
  slipwayAs(credentials: Record<string, string>, ...args: string[]): Promise<Outcome>;
  /** A client of the SDK with credentials of the account's owner, or of somebody else. */
  client<C>(Client: new (options: ClientOptions) => C, credentials?: Record<string, string>): C;
}

/** What every client of the SDK takes. */
export interface ClientOptions {
  endpoint: string;
  region: string;
  credentials: { accessKeyId: string; secretAccessKey: string; sessionToken?: string };
  maxAttempts: number;
  forcePathStyle: boolean;
  requestHandler?: { httpsAgent: https.Agent };
}

/** @param env variables of the sandbox, with those of other credentials on top */
function clientOptions({ endpoints }: TestSandbox, service: string, env: Record<string, string>): ClientOptions {
  const { AWS_ACCESS_KEY_ID = '', AWS_SECRET_ACCESS_KEY = '', AWS_SESSION_TOKEN, AWS_CA_BUNDLE } = env;
  const credentials = {
    accessKeyId: AWS_ACCESS_KEY_ID,
    secretAccessKey: AWS_SECRET_ACCESS_KEY,
    sessionToken: AWS_SESSION_TOKEN,
  };
  const endpoint = service === 'SageMakerClient' ? endpoints.sagemaker : endpoints.aws;
  const trust = AWS_CA_BUNDLE && {
    requestHandler: { httpsAgent: new https.Agent({ ca: readFileSync(AWS_CA_BUNDLE) }) },
  };
  return { endpoint, region: 'us-west-2', credentials, maxAttempts: 1, forcePathStyle: true, ...(trust || {}) };
}

/** An environment whose jobs run a Python of this machine, on two m5.xlarge. */
export const TWO_CPU_HOSTS = {
  environment: `name: e2e
regions: { us-west-2: {} }
storage: { retain: false }
quotas: { enforce: "off" }
image: { uri: "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch:2.13" }
`,
  /** Two m5.xlarge; totals and instances of a job as needed. */
  quotas: { 'L-CCE2AFA6': 2, 'L-00C91CB5': 4, 'L-622CFD70': 4 },
};

/**
 * An environment `e2e` without guardrails, deployed into one region by the real CDK CLI.
 * @param runFiles files beside the environment file, by their path from it
 */
export async function deployedSandbox(
  environment: string,
  quotas: Record<string, number>,
  options: SandboxOptions = {},
  runFiles: Record<string, string> = {},
): Promise<Deployed> {
  const sandbox = await testSandbox({ quotas, time: { stopGraceSeconds: 5 }, ...options });
  try {
    const file = path.join(sandbox.folder, 'e2e.yaml');
    for (const [name, text] of [[path.basename(file), environment], ...Object.entries(runFiles)] as const) {
      mkdirSync(path.dirname(path.join(sandbox.folder, name)), { recursive: true });
      writeFileSync(path.join(sandbox.folder, name), text);
    }
    const assembly = path.join(sandbox.folder, 'cdk.out');
    const cdk = (...args: string[]) => sandbox.call(CDK, args);
    const synth = () => cdk('synth', '--quiet', '--output', assembly, '-c', `environment=${file}`);
    const deploy = () => cdk('deploy', '--all', '--app', assembly, '--method=direct', '--require-approval', 'never');
    await Promise.all([cdk('bootstrap', 'aws://000000000000/us-west-2', '--app', ''), synth()]);
    await deploy();
    return {
      ...sandbox,
      cdk,
      deployAgain: async () => {
        await synth();
        await deploy();
      },
      slipway: (...args) =>
        sandbox.call(process.execPath, [CLI, ...args, '--environment', 'e2e/default', '--region', 'us-west-2']),
      slipwayAs: (credentials, ...args) =>
        sandbox.tryCall(
          process.execPath,
          [CLI, ...args, '--environment', 'e2e/default', '--region', 'us-west-2'],
          credentials,
        ),
      client: (Client, credentials = {}) =>
        new Client(clientOptions(sandbox, Client.name, { ...sandbox.env, ...credentials })),
    };
  } catch (error) {
    await sandbox.end();
    throw error;
  }
}
