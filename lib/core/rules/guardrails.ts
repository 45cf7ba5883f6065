import type { Descriptor } from '../config/descriptor';
import { matchesGlob } from '../config/formats/patterns';
import { type Issue, orList } from '../config/issue';
import { hostCount, requestedGroupsOf } from '../config/resolve-run';
import { type Finding, issueOf, type Rule, rule, when } from '../config/rule';
import type { RunSpec } from '../config/run-spec';
import { namedTypes } from '../distribution/strategy';
import { modesBesideManaged } from './own-code';

type GuardedDescriptor = Pick<Descriptor, 'name' | 'guardrails' | 'teamKeyArn'>;
interface GuardrailContext {
  descriptor?: GuardedDescriptor;
}

interface GuardrailRule extends Omit<Rule, 'check'> {
  check(run: RunSpec, context: GuardrailContext): Finding[];
}

/** Matches a guardrail's pattern with `*` and `?`. */
export const matchesPattern = (pattern: string, text: string): boolean => matchesGlob(pattern, text, { one: '?' });

/** Whether guardrails allow an instance type: without patterns, all of them. */
export const isAllowedType = (allowed: readonly string[] | undefined, type: string): boolean =>
  !allowed || allowed.some((pattern) => matchesPattern(pattern, type));

const ASK = 'ask the platform team, or launch into another environment';

/** Whether a prefix of an image URI ends where a part of the URI ends: `.../team` does not allow `.../team-evil`. */
function isBelow(uri: string, prefix: string): boolean {
  if (!uri.startsWith(prefix)) return false;
  // After the registry alone, a colon begins a port, which belongs to another registry.
  const separators = prefix.includes('/') ? ['', '/', ':', '@'] : ['', '/'];
  return prefix.endsWith('/') || separators.includes(uri.charAt(prefix.length));
}

export const GUARDRAIL_RULES: readonly GuardrailRule[] = [
  rule('guardrails/instance-types', 'error', (run, { descriptor }) => {
    const allowed = descriptor?.guardrails?.allowedInstanceTypes;
    if (!allowed) return [];
    return namedTypes(run)
      .filter(({ type }) => !isAllowedType(allowed, type))
      .map(({ path }) => ({
        path,
        must: `must be allowed in environment ${descriptor?.name} (${orList(allowed)})`,
        fix: ASK,
      }));
  }),
  rule('guardrails/sizes', 'error', (run, { descriptor }) => {
    const limits = descriptor?.guardrails;
    const instances = hostCount(requestedGroupsOf(run.compute));
    const spares = run.compute.spareInstances > 0 ? ', spare hosts among them' : '';
    const path = run.compute.instanceGroups.length > 0 ? 'compute.instanceGroups' : 'compute.instanceCount';
    const most = Math.min(
      limits?.maxInstancesPerRun ?? Number.POSITIVE_INFINITY,
      limits?.maxConcurrentInstances ?? Number.POSITIVE_INFINITY,
    );
    const isTooLong =
      limits?.maxRuntimeSeconds !== undefined && run.limits.maxRuntimeSeconds > limits.maxRuntimeSeconds;
    const isTooCostly =
      limits?.maxCostPerRunUsd !== undefined && (run.limits.maxCostUsd ?? 0) > limits.maxCostPerRunUsd;
    return [
      ...when(instances > most, path, {
        must: `must be at most ${most} in environment ${descriptor?.name}${spares}`,
        got: instances,
        fix: ASK,
      }),
      ...when(isTooLong, 'limits.maxRuntimeSeconds', {
        must: `must be at most ${limits?.maxRuntimeSeconds} in environment ${descriptor?.name}`,
        fix: 'reduce it; a longer run continues in further attempts',
      }),
      ...when(isTooCostly, 'limits.maxCostUsd', {
        must: `must be at most ${limits?.maxCostPerRunUsd} in environment ${descriptor?.name}`,
        fix: ASK,
      }),
    ];
  }),
  rule('guardrails/images', 'error', (run, { descriptor }) => {
    const allowed = descriptor?.guardrails?.allowedImages;
    const { kind, uri } = run.image;
    if (!allowed || allowed.includes(kind)) return [];
    const fits = kind === 'uri' && uri !== undefined && allowed.some((prefix) => isBelow(uri, prefix));
    return when(!fits, kind === 'uri' ? 'image.uri' : 'image.kind', {
      must: `must be allowed in environment ${descriptor?.name} (${orList(allowed)})`,
      got: uri ?? kind,
      fix: ASK,
    });
  }),
  rule('guardrails/switches', 'error', (run, { descriptor }) => {
    const limits = descriptor?.guardrails;
    return [
      ...when(limits?.requireNetworkIsolation === true && !run.network.isolation, 'network.isolation', {
        must: `must be true in environment ${descriptor?.name}`,
        fix: 'add network: { isolation: true }',
      }),
      ...when(limits?.allowRemoteDebug === false && run.observability.remoteDebug, 'observability.remoteDebug', {
        must: `must be false in environment ${descriptor?.name}: it opens a shell with the role's credentials`,
      }),
    ];
  }),
  /**
   * SageMaker uploads these itself, and its request cannot name a key for them: they would be encrypted with the bucket's key, with which the
   * role may only decrypt.
   */
  rule('guardrails/team-key', 'error', (run, { descriptor }) => {
    if (!descriptor?.teamKeyArn) return [];
    const modes = modesBesideManaged(run);
    const why = `in environment ${descriptor.name}: the team has a key of its own, which`;
    return [
      ...when(run.checkpoints.mode === 'managed', 'checkpoints.mode', {
        must: `must be ${orList([...modes, 'none'])} ${why} CheckpointConfig cannot name`,
        fix: `write checkpoints: { mode: ${modes[0]} }`,
      }),
      ...when(run.observability.tensorBoard, 'observability.tensorBoard', {
        must: `must be false ${why} TensorBoardOutputConfig cannot name`,
        fix: 'remove it; slipway status --chart and slipway report draw the same lines',
      }),
      ...when(run.observability.profiler === 'sagemaker', 'observability.profiler', {
        must: `must not be sagemaker ${why} ProfilerConfig cannot name`,
        fix: 'write profiler: pytorch, or remove it',
      }),
    ];
  }),
];

/** Guardrail issues of a run for an environment that is not deployed yet. */
export function guardrailIssues(run: RunSpec, limits: GuardedDescriptor): Issue[] {
  return GUARDRAIL_RULES.flatMap((rule) =>
    rule.check(run, { descriptor: limits }).map((found) => issueOf(rule, found)),
  );
}
