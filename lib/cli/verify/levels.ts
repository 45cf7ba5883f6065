import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { publishedBaseUri } from '../../core/catalog/images/images';
import type { Descriptor } from '../../core/config/descriptor';
import { UsageError } from '../exit';
import { DEPLOY_PROBES, deploySequence, type RunCdk, VERIFY_ENVIRONMENT } from './account/deploy/deploy-world';
import { type Level, type Probe, type ProbeResult, type ReadWorld, runProbe } from './account/probe';
import { EFA_PROBES } from './account/probes/efa';
import { CATALOG_PROBES } from './account/probes/read-catalog';
import { NETWORK_PROBES } from './account/probes/read-network';
import { PERMISSION_PROBES } from './account/probes/read-permissions';
import { QUOTA_PROBES } from './account/probes/read-quotas';
import { TRAIN_PROBES } from './account/probes/train';
import type { JobPlace } from './account/train/train-jobs';
import { cleanUpTraining, type TrainWorld, trainWorld } from './account/train/train-world';
import { efaRun } from './efa';

/** Level `read`: free of charge, changes nothing. */
export const READ_PROBES = [...PERMISSION_PROBES, ...NETWORK_PROBES, ...QUOTA_PROBES, ...CATALOG_PROBES];
/** Number of probes that read the same account in parallel. */
const READS_AT_ONCE = 4;

/** One level, ready to run: its probes, and its clean-up. */
export interface PreparedLevel {
  readonly level: Level;
  readonly probes: readonly { assumption: string; run(): Promise<ProbeResult> }[];
  readonly atOnce: number;
  /** Stops and deletes what the level created; returns what it could not. */
  cleanUp(): Promise<string[]>;
}

export interface LevelOptions {
  readonly id: string;
  readonly account: string;
  readonly partition: string;
  readonly cpuType: string;
  readonly efaType?: string;
  readonly image?: string;
  readonly pollMs: number;
  report(text: string): void;
}

/** @param world inputs of the probes, created once, when the first of them needs it */
function prepared<World>(
  level: Level,
  probes: readonly Probe<World>[],
  world: () => Promise<World> | World,
  cleanUp: PreparedLevel['cleanUp'] = async () => [],
): PreparedLevel {
  let making: Promise<World> | undefined;
  const made = () => {
    making ??= Promise.resolve().then(world);
    return making;
  };
  return {
    level,
    probes: probes.map((probe) => ({
      assumption: probe.assumption,
      run: () => runProbe(level, probe, made, Date.now),
    })),
    atOnce: level === 'read' ? READS_AT_ONCE : probes.length,
    cleanUp,
  };
}

/**
 * Prepares one level.
 * @throws UsageError for missing options of the caller
 */
export function prepareLevel(level: Level, read: ReadWorld, options: LevelOptions): PreparedLevel {
  switch (level) {
    case 'read':
      return prepared(level, READ_PROBES, () => read);
    case 'deploy':
      return prepareDeploy(read, options);
    case 'train':
      return prepareTrain(read, options);
    case 'efa':
      return prepareEfa(read, options);
  }
}

/** An image for containers that need only bash and Python. */
function imageOf({ descriptor, region }: ReadWorld, given: string | undefined): string {
  const image = given ?? descriptor?.trainingImageUri ?? publishedBaseUri('pytorch-2.13', region);
  if (!image) throw new UsageError('--image: must be set when the environment has no training image; use one in ECR');
  return image;
}

function prepareDeploy(read: ReadWorld, options: LevelOptions): PreparedLevel {
  const { region } = read;
  if (read.environment === VERIFY_ENVIRONMENT)
    throw new UsageError(
      `--level deploy: must be another environment than ${VERIFY_ENVIRONMENT}, which this level creates itself; use another`,
    );
  const cdk = cdkRunner(`Slipway-${VERIFY_ENVIRONMENT}-${region}`, region);
  const place = { region, account: options.account, partition: options.partition, image: imageOf(read, options.image) };
  let last: { verb: string; file: string; ended: ReturnType<RunCdk> } | undefined;
  const run: RunCdk = (verb, file) => {
    last = { verb, file, ended: cdk.run(verb, file) };
    return last.ended;
  };
  const report = (stage: string) => options.report(`deploy: ${stage}`);
  const cleanUp = async () => {
    const outcome = await last?.ended.catch(() => undefined);
    const left: string[] = [];
    if (last && !(last.verb === 'destroy' && outcome?.code === 0)) {
      report('deleting existing resources');
      const { code } = await cdk.run('destroy', last.file);
      if (code !== 0)
        left.push(`stack Slipway-${VERIFY_ENVIRONMENT}-${region}: cdk destroy failed; delete it manually`);
    }
    cdk.end();
    return left;
  };
  return prepared('deploy', DEPLOY_PROBES, () => deploySequence({ read, place, cdk: run, report }), cleanUp);
}

function requireDescriptor({ descriptor, environment, region }: ReadWorld, level: Level): Descriptor {
  if (descriptor) return descriptor;
  throw new UsageError(
    `--level ${level}: must have a deployed environment, got ${environment}, which is not in ${region}; deploy it, or use --level deploy`,
  );
}

function prepareTrain(read: ReadWorld, options: LevelOptions): PreparedLevel {
  const descriptor = requireDescriptor(read, 'train');
  const place: JobPlace = {
    descriptor,
    image: imageOf(read, options.image),
    instanceType: options.cpuType,
    id: options.id,
  };
  let made = false;
  const world = (): Promise<TrainWorld> => {
    made = true;
    options.report(`train: jobs on ${options.cpuType} as ${descriptor.name}/${descriptor.team}`);
    return trainWorld(read, place, options.pollMs);
  };
  return prepared('train', TRAIN_PROBES, world, async () => (made ? cleanUpTraining(read, place) : []));
}

function prepareEfa(read: ReadWorld, options: LevelOptions): PreparedLevel {
  const descriptor = requireDescriptor(read, 'efa');
  const { efaType } = options;
  if (!efaType)
    throw new UsageError(
      '--efa-type: must be an instance type with EFA for --level efa, got nothing; use one such as ml.p4d.24xlarge',
    );
  const run = efaRun(descriptor, efaType, options);
  return prepared('efa', EFA_PROBES, run.observe, run.cleanUp);
}

/**
 * The CDK CLI of the app in this folder.
 * @throws UsageError when there is no app, or no CLI
 */
function cdkOf(folder: string): string {
  if (!existsSync(path.join(folder, 'cdk.json')))
    throw new UsageError(
      `--level deploy: must run in the folder of the CDK app, got ${folder} without cdk.json; change into it, or use --level read`,
    );
  try {
    const manifest = createRequire(path.join(folder, 'package.json')).resolve('aws-cdk/package.json');
    return path.join(path.dirname(manifest), 'bin/cdk');
  } catch {
    throw new UsageError('--level deploy: must have the package aws-cdk, got none; run npm ci');
  }
}

/** Runs `cdk deploy` and `cdk destroy` of an environment file, with the app of the working folder. */
function cdkRunner(stack: string, region: string): { run: RunCdk; end(): void } {
  const cdk = cdkOf(process.cwd());
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-verify-'));
  const output = path.join(folder, 'cdk.out');
  const call = (args: readonly string[]) =>
    new Promise<{ code: number; output: string }>((done, fail) => {
      // A separate process group: Ctrl-C must not interrupt a deploy, because an interrupted deploy could not be destroyed.
      const child = spawn(process.execPath, [cdk, ...args], {
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, AWS_REGION: region, NO_COLOR: '1' },
      });
      let text = '';
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (data: Buffer) => {
          text += data.toString();
        });
      child.on('error', fail);
      child.on('close', (code) => done({ code: code ?? 1, output: text }));
    });
  return {
    run: async (verb, text) => {
      const file = path.join(folder, 'verify.yaml');
      writeFileSync(file, text);
      const common = [stack, '-c', `environment=${file}`, '-c', 'checks=off', '--output', output];
      if (verb === 'destroy') return call(['destroy', ...common, '--force']);
      return call(['deploy', ...common, '--require-approval', 'never', '--method=direct']);
    },
    end: () => rmSync(folder, { recursive: true, force: true }),
  };
}
