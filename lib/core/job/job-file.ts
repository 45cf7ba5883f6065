import { PRESETS } from '../catalog/model/presets';
import { type PublishedConfig, publishedConfigs } from '../catalog/model/published';
import { type TrainerLimits, trainedModel } from '../catalog/model/trainer-limits';
import { channelFolder, fillPlaceholders } from '../config/formats/places';
import { configKeys } from '../config/inline';
import { healthCheckOf, hostCount, trainingGroupsOf } from '../config/resolve-run';
import type { ModelSpec, RunSpec } from '../config/run-spec';
import { findStrategy } from '../distribution';
import { resolvedDeepspeedConfig } from '../distribution/deepspeed';
import { memoryCopies } from '../distribution/memory-copies';
import { flagArguments } from '../distribution/strategy';
import { type JobPlan, runPrefixes } from './plan';

/**
 * How many times within an hour the driver of the first host may restart all processes in place; after one more failure, the job ends. A large
 * job has failures that have nothing to do with each other: jobs on RSC-1 one an hour for each 1,000 hosts.
 */
export const restartsPerHour = (hosts: number): number => 3 + Math.floor(hosts / 128);

function checkpointUri(plan: JobPlan): string {
  const { mode, s3, localPath, channel } = plan.run.checkpoints;
  if (mode === 'direct') return fillPlaceholders(s3, plan);
  if (mode === 'managed') return localPath;
  return mode === 'fsx' ? `${channelFolder(channel ?? '')}/runs/${plan.descriptor.team}/${plan.runId}` : '';
}

/** Observability options for the built-in trainer; custom code decides itself where it sends its metrics. */
function observingArguments({ code, observability: { tensorBoard, mlflow, wandb, profiler } }: RunSpec): string[] {
  if (code.builtin !== 'builtin') return [];
  const requested = {
    '--tensorboard': tensorBoard,
    '--mlflow': mlflow,
    '--wandb': wandb,
    '--profile': profiler === 'pytorch',
  };
  return Object.entries(requested).flatMap(([flag, wanted]) => (wanted ? [flag] : []));
}

/** The section `tokenizer` as arguments of the tokenise step. */
function tokenizerArguments({ code, tokenizer = {} }: RunSpec): string[] {
  if (code.builtin !== 'builtin-tokenize') return [];
  return flagArguments({
    ...(tokenizer.chatTemplate !== undefined && { 'chat-template': tokenizer.chatTemplate }),
    ...(tokenizer.trainOn !== undefined && { 'train-on': tokenizer.trainOn }),
  });
}

/** An isolated container cannot access S3, and the role of processing jobs cannot write checkpoints. */
const writesHeartbeats = (run: RunSpec): boolean => run.kind === 'training' && !run.network.isolation;

/** An isolated container cannot read anything: it only gets SIGTERM. */
const mayHandOver = (run: RunSpec): boolean =>
  (run.preemptible === true || run.compute.elastic !== undefined) && !run.network.isolation;

/** Arguments of the program: those of the strategy, then the user's, then those from sections of the run file. */
export function programArguments(run: RunSpec): string[] {
  return [
    ...(findStrategy(run)?.arguments(run) ?? []),
    ...flagArguments(run.code.arguments),
    ...observingArguments(run),
    ...tokenizerArguments(run),
  ];
}

function checkpointsSection(plan: JobPlan) {
  const { mode, keep, intervalMinutes, committedMarker } = plan.run.checkpoints;
  const memory = memoryCopies(plan.run);
  return {
    mode,
    uri: checkpointUri(plan),
    resumeFrom: plan.resumeFrom,
    keep,
    intervalMinutes,
    ...(memory && { memory }),
    ...(committedMarker !== undefined && { committedMarker }),
    ...(plan.history && { history: plan.history }),
    ...(plan.rollback && { rollback: plan.rollback }),
  };
}

/** The architecture; for the built-in trainer also what follows from it, and with published weights or an export how their files describe it. */
export function modelSection(
  run: RunSpec,
): (ModelSpec['architecture'] & { limits?: TrainerLimits; published?: PublishedConfig[] }) | null {
  const { model, code, distribution, written } = run;
  if (!model || code.builtin !== 'builtin') return model?.architecture ?? null;
  const trained = trainedModel(model.architecture);
  const exports = programArguments(run).includes('--export-weights');
  if (!(model.weights || exports || distribution.library === 'smp-v2')) return trained;
  const { architecture, config, preset = '' } = written.model ?? {};
  const file = architecture ? undefined : config ? configKeys(config) : PRESETS[preset];
  return { ...trained, published: publishedConfigs(model.architecture, file) };
}

/** job.json of one attempt: docs/reference/runtime.md, schema 1. containers/README.md says what each field means, and who reads it. */
export type JobFile = ReturnType<typeof jobFile>;

/**
 * job.json: information for the driver of one attempt that hyperparameters cannot contain. The control plane writes it to channel `job`, and
 * containers/driver reads it. `secrets` names variables, each with the secret or parameter that contains the value.
 */
export function jobFile(plan: JobPlan) {
  const { run, descriptor } = plan;
  const { library, collectives } = run.distribution;
  const parameters = library === 'deepspeed' ? resolvedDeepspeedConfig(run) : run.distribution.parameters;
  return {
    schema: 1 as const,
    environment: descriptor.name,
    runId: plan.runId,
    attempt: plan.attempt,
    team: descriptor.team,
    configHash: plan.configHash,
    launcher: run.distribution.launcher,
    processesPerHost: run.distribution.processesPerHost,
    entryPoint: run.code.entryPoint,
    arguments: programArguments(run),
    env: { ...findStrategy(run)?.environment(run), ...run.environmentVariables },
    userPinned: Object.keys(run.environmentVariables),
    ...(run.secrets && { secrets: run.secrets }),
    efa: run.network.efa,
    efaVariables: run.network.efaVariables,
    instanceGroups: run.compute.instanceGroups,
    trainingGroups: run.distribution.instanceGroups,
    mpiOptions: run.distribution.mpiOptions,
    distribution: { library, collectives, parameters },
    training: { ...run.training, ...(plan.skips && { skips: plan.skips }) },
    model: modelSection(run),
    weights: run.model?.weights ? 'weights' : null,
    checkpoints: checkpointsSection(plan),
    progress: run.progress,
    digests: { code: plan.code?.sha256 ?? null, requirements: null },
    requirements: run.code.requirements ?? null,
    maxRuntimeSeconds: run.limits.maxRuntimeSeconds,
    heartbeatUri: writesHeartbeats(run) ? runPrefixes(plan).heartbeat : null,
    ...(mayHandOver(run) && { handOverUri: runPrefixes(plan).handOver }),
    ...(writesHeartbeats(run) && { compileCacheUri: runPrefixes(plan).compileCache }),
    restartsInPlace: restartsPerHour(hostCount(trainingGroupsOf(run))),
    spareInstances: run.compute.spareInstances,
    healthCheck: healthCheckOf(run),
    ...(plan.knownGpus && { knownGpus: plan.knownGpus }),
    restartSecret: plan.restartSecret,
  };
}
