import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { EnvironmentSpec } from '../../core/config/environment-file';
import type { QuotaNeed } from '../../core/quota';
import type { RunRecord } from '../../sandbox/run-file';
import { SandboxAdmin } from '../../sandbox/sandbox-admin';
import { ownPackage, packageRoot } from '../../shared/local/own-package';
import { needsOfEnvironment, requireEnvironment } from '../environment/environment-file';
import { EXIT, ServiceError, UsageError } from '../exit';
import { readText } from '../inputs';
import { json, type Terminal } from '../terminal';
import { unsetForeign } from './sandbox';

/** `slipway sandbox deploy FILE`: bootstraps and deploys the regions of an environment file into the running embedded AWS. */
export async function deployIntoSandbox(
  file: string | undefined,
  { record, stateDir }: { record: RunRecord; stateDir: string },
  options: { raiseQuotas?: boolean; json?: boolean },
  terminal: Terminal,
): Promise<number> {
  if (!file)
    throw new UsageError(
      'sandbox deploy: must be given an environment file, got nothing; write slipway sandbox deploy environments/research.yaml',
    );
  const disk = requireEnvironment(file, readText(file), {});
  if (options.raiseQuotas)
    for (const spec of disk.specs) await raiseQuotas(record, spec.region, needsOfEnvironment(disk, spec), terminal);
  const run = cdkIn(record, terminal);
  const places = disk.specs.map((spec) => `aws://${record.env.AWS_ACCESS_KEY_ID}/${spec.region}`);
  await run('bootstrap', ...places, '--app', '', '--output', path.join(stateDir, 'cdk.bootstrap'));
  await run('deploy', ...(await deployArguments(file, stateDir, terminal)));
  const stacks = disk.specs.map(({ name, region }) => ({ region, stack: `Slipway-${name}-${region}` }));
  if (options.json) terminal.out(json({ environment: disk.specs[0]?.name, stacks }));
  else
    terminal.err(
      `deployed ${stacks.map(({ stack }) => stack).join(', ')}; next: slipway launch RUN.yaml --environment ${oneTeamOf(disk.specs[0])} --region ${stacks[0]?.region}`,
    );
  return EXIT.done;
}

/** `research/nlp`; the name alone says enough if there is one team. */
const oneTeamOf = (spec: EnvironmentSpec | undefined): string => {
  const [team, ...others] = Object.keys(spec?.teams ?? {});
  return others.length > 0 ? `${spec?.name}/${team}` : `${spec?.name}`;
};

async function deployArguments(file: string, stateDir: string, terminal: Terminal): Promise<string[]> {
  // A project that `slipway init` created has its own app in cdk.json.
  const app = isOwnProject() ? [] : ['--app', await cdkApp(terminal)];
  const output = ['--output', path.join(stateDir, 'cdk.out')];
  const environment = ['-c', `environment=${path.resolve(file)}`];
  return ['--all', ...app, ...output, ...environment, '--method', 'direct', '--require-approval', 'never'];
}

/** Raises quotas that are below the environment's needs: a new embedded AWS has the limits of a new account. */
async function raiseQuotas(
  { endpoints, env }: RunRecord,
  region: string,
  needs: readonly QuotaNeed[],
  terminal: Terminal,
): Promise<void> {
  const admin = new SandboxAdmin(endpoints.sagemaker, env.AWS_CA_BUNDLE);
  for (const { code, name, needed } of needs) {
    if (!code) continue;
    const row = (await admin.quotas(region)).find((quota) => quota.code === code);
    if (row && row.value !== null && row.value >= needed) continue;
    await admin.setQuota(region, code, needed, name);
    terminal.err(`quota ${name} (${code}) in ${region}: raised to ${needed}`);
  }
}

/** Runs the CDK command line against the embedded AWS; its output goes to stderr, because stdout is for the document. */
function cdkIn(record: RunRecord, terminal: Terminal) {
  const program = cdkProgram();
  const env: NodeJS.ProcessEnv = { ...process.env, ...record.env, CDK_DISABLE_CLI_TELEMETRY: 'true' };
  for (const name of unsetForeign(record.env)) delete env[name];
  // A proxy would get the calls to this machine.
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy']) delete env[name];
  return async (verb: string, ...args: string[]): Promise<void> => {
    const child = spawn(process.execPath, [program, verb, ...args], {
      cwd: isOwnProject() ? process.cwd() : packageRoot(),
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => terminal.err(text.trimEnd()));
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
    if (code !== 0) throw new ServiceError(`cdk ${verb}: must succeed, got exit code ${code}; see the reason above`);
  };
}

/** Whether the working folder is a CDK app that depends on this package. */
function isOwnProject(): boolean {
  if (!existsSync('cdk.json') || !existsSync('package.json')) return false;
  const { dependencies = {} } = JSON.parse(readFileSync('package.json', 'utf8')) as { dependencies?: object };
  return ownPackage().name in dependencies;
}

/** The `cdk` command of the working folder, otherwise of this installation. */
function cdkProgram(): string {
  for (const folder of [process.cwd(), packageRoot()]) {
    try {
      return createRequire(path.join(folder, 'package.json')).resolve('aws-cdk/bin/cdk');
    } catch {
      // Try the next location.
    }
  }
  throw new UsageError('aws-cdk: must be installed next to slipway, got nothing; run npm install --save-dev aws-cdk');
}

/** The CDK app of this installation; it is built first if this is a clone that was never built. */
async function cdkApp(terminal: Terminal): Promise<string> {
  const app = path.join(packageRoot(), 'dist/bin/app.js');
  if (existsSync(app)) return app;
  terminal.err('slipway: the CDK app is not built yet; running node scripts/build.mjs');
  const child = spawn(process.execPath, [path.join(packageRoot(), 'scripts/build.mjs'), 'lib', 'handlers'], {
    // The bundler resolves its files relative to the folder in which it is started.
    cwd: packageRoot(),
    stdio: ['ignore', 2, 2],
  });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  if (code !== 0)
    throw new UsageError(`${app}: must be built, got exit code ${code} from the build; run npm run build to see why`);
  return app;
}
