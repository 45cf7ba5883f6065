import { mkdirSync, writeFileSync } from 'node:fs';
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
  aws(...args: string[]): Promise<unknown>;
}

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
        sandbox.call(process.execPath, [CLI, ...args, '--environment', 'e2e', '--region', 'us-west-2']),
      slipwayAs: (credentials, ...args) =>
        sandbox.tryCall(
          process.execPath,
          [CLI, ...args, '--environment', 'e2e/default', '--region', 'us-west-2'],
          credentials,
        ),
      aws: async (...args) =>
        JSON.parse(
          (await sandbox.call(path.join(ROOT, '.slipway/python/bin/aws'), [...args, '--output', 'json'])) || 'null',
        ),
    };
  } catch (error) {
    await sandbox.end();
    throw error;
  }
}
