import { hasLocalNvme, INSTANCE_TYPES } from '../../core/catalog/instances/instances';
import type { EnvironmentSpec } from '../../core/config/environment-file';
import type { ExactStatement } from './statement';

/** Constraints for every job of an environment, regardless of who requests it and of what our own code would accept. */
export interface JobGuardrails {
  /** Name of the environment, which is the prefix of every job name. */
  readonly environment: string;
  /** Allowed values of the team tag of a job. */
  readonly teams: readonly string[];
  /** Keys for outputs and volumes: the environment's, and those of teams with a key of their own. */
  readonly keyArns: readonly string[];
  /** Empty: jobs run without a VPC. */
  readonly subnetIds: readonly string[];
  /** Security groups, all of which every job must use. */
  readonly securityGroupIds: readonly string[];
  /** Limits of the environment file. */
  readonly limits: EnvironmentSpec['guardrails'];
}

type Conditions = Record<string, Record<string, string | string[]>>;

/**
 * The environment's guardrails as IAM conditions on CreateTrainingJob and CreateProcessingJob. `ForAllValues` is also met by a request
 * without the key, so `Null` requires the key. Both actions send every key that is used here:
 * https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsagemaker.html, 2026-11-22. The reference does not say that
 * `sagemaker:InstanceTypes` contains the types of `InstancePreferences` and of instance groups; `ResourceConfig` has no other fields with
 * types.
 */
export function jobConditions(guardrails: JobGuardrails): Conditions {
  const { environment, teams, limits, subnetIds, securityGroupIds } = guardrails;
  const isInVpc = subnetIds.length > 0;
  const types = limits.allowedInstanceTypes;
  const equals = {
    ...(isInVpc && { 'sagemaker:VpcSubnets': [...subnetIds], 'sagemaker:VpcSecurityGroupIds': [...securityGroupIds] }),
  };
  const like = { ...(types && { 'sagemaker:InstanceTypes': types }) };
  const present = [...Object.keys(equals), ...Object.keys(like), 'aws:RequestTag/slipway:run'];
  return {
    StringEquals: {
      'aws:RequestTag/slipway:environment': environment,
      'aws:RequestTag/slipway:team': [...teams],
    },
    ...(isInVpc && { 'ForAllValues:StringEquals': equals }),
    ...(types && { 'ForAllValues:StringLike': like }),
    Null: Object.fromEntries(present.map((key) => [key, 'false'])),
    ...(limits.maxRuntimeSeconds !== undefined && {
      NumericLessThanEquals: { 'sagemaker:MaxRuntimeInSeconds': String(limits.maxRuntimeSeconds) },
    }),
    ...(limits.requireNetworkIsolation && { Bool: { 'sagemaker:NetworkIsolation': 'true' } }),
  };
}

/** Conditions only for CreateTrainingJob. */
export function trainingConditions(guardrails: JobGuardrails): Conditions {
  const { allowRemoteDebug } = guardrails.limits;
  return {
    ...jobConditions(guardrails),
    ...(!allowRemoteDebug && { BoolIfExists: { 'sagemaker:EnableRemoteDebug': 'false' } }),
  };
}

/**
 * Denials of jobs that would write outputs or volumes with another key, or without one. They are denials because a list of keys stands in
 * each of them once. A negated operator is met by a request without the key: outputs always have one. Volumes of types with local NVMe have
 * none, because SageMaker rejects a key for them (assumption `volume-on-nvme`); a job with any other type must have one.
 */
export function keyDenials({ keyArns }: JobGuardrails, jobs: readonly string[]): ExactStatement[] {
  const [first = '', ...others] = keyArns;
  // A single key is written as a string, not as a list.
  const keys = others.length === 0 ? first : [...keyArns];
  const without = (sid: string, conditions: Conditions) => ({
    sid,
    deny: true,
    actions: ['sagemaker:CreateTrainingJob', 'sagemaker:CreateProcessingJob'],
    resources: [...jobs],
    conditions,
    wildcard: 'A denial of jobs of this environment, whatever their name.',
  });
  return [
    without('NoOtherOutputKey', { ArnNotEquals: { 'sagemaker:OutputKmsKey': keys } }),
    without('NoOtherVolumeKey', {
      ArnNotEquals: { 'sagemaker:VolumeKmsKey': keys },
      Null: { 'sagemaker:VolumeKmsKey': 'false' },
    }),
    without('NoUnencryptedVolumes', {
      'ForAnyValue:StringLike': { 'sagemaker:InstanceTypes': familiesWithoutNvme() },
      Null: { 'sagemaker:VolumeKmsKey': 'true' },
    }),
  ];
}

/** `ml.c5.*`, ...: families in which the catalog has no type with local NVMe. */
function familiesWithoutNvme(): string[] {
  const family = (name: string) => name.split('.').slice(0, 2).join('.');
  const withNvme = new Set(
    INSTANCE_TYPES.map(({ name }) => name)
      .filter(hasLocalNvme)
      .map(family),
  );
  const families = new Set(INSTANCE_TYPES.map(({ name }) => family(name)));
  return [...families].filter((name) => !withNvme.has(name)).map((name) => `${name}.*`);
}
