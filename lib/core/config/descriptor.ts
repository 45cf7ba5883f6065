import { z } from 'zod';
import type { EnvironmentSpec } from './environment-file';
import { formed } from './formats/field';

/**
 * Information about an environment for its tools, one per team, in the SSM parameter `/slipway/environments/<name>/<team>`. Unknown keys
 * are ignored, so that an older tool can read a newer environment. A list of what a team may use is empty
 * when it is missing; a missing guardrail is no limit.
 */
export const descriptorSchema = z.looseObject({
  schemaVersion: z.literal(1),
  slipwayVersion: z.string().optional(),
  name: z.string().min(1),
  team: z.string().min(1),
  partition: z.string().default('aws'),
  account: formed(/^\d{12}$/, 'must be 12 digits'),
  region: z.string().min(1),
  executionRoleArn: z.string().min(20),
  processingRoleArn: z.string().optional(),
  dataBucket: z.string().min(3),
  checkpointBucket: z.string().min(3),
  artifactBucket: z.string().min(3),
  kmsKeyArn: z.string().optional(),
  /** The team's own key, with which everything is encrypted that its jobs and its launcher write; absent = the environment's key. */
  teamKeyArn: z.string().optional(),
  subnetIds: z.array(z.string()).default([]),
  securityGroupIds: z.array(z.string()).default([]),
  subnets: z.array(z.looseObject({ id: z.string(), zoneId: z.string() })).optional(),
  network: z
    .looseObject({
      mode: z.string().optional(),
      packages: z.enum(['none', 'wheels', 'codeartifact']).optional(),
      wheels: z.string().optional(),
    })
    .optional(),
  fileSystems: z
    .record(
      z.string(),
      z.looseObject({
        id: z.string().optional(),
        fsxLustre: z.string().optional(),
        efs: z.string().optional(),
        directoryPath: z.string().optional(),
        /** Several teams mount it, and its folder data is the data bucket, whose places are those of the teams. */
        isShared: z.boolean().optional(),
      }),
    )
    .optional(),
  external: z.array(z.looseObject({ s3: z.string(), access: z.string().optional() })).optional(),
  /** Prefixes of the data bucket to which the team's processing runs may write; absent = `teams/<team>/`. */
  writableData: z.array(z.string()).optional(),
  /** MLflow servers and apps that the team's runs may log to; absent = none. */
  mlflow: z.array(z.string()).optional(),
  /** Training plans of other teams, which the team's runs may not use; absent = none. */
  foreignTrainingPlans: z.array(z.string()).optional(),
  trainingImageUri: z.string().optional(),
  image: z
    .looseObject({
      pytorch: z.string().optional(),
      cuda: z.string().optional(),
      smp: z.string().optional(),
      smddp: z.string().optional(),
    })
    .optional(),
  /** Tags of the environment's jobs. */
  tags: z.record(z.string(), z.string()).optional(),
  /** Name prefix of the secrets that the team's runs may use; absent = none. */
  secretsPrefix: z.string().optional(),
  prices: z.record(z.string(), z.number()).optional(),
  /** Budget of the team per calendar month, above which no new run is started; absent = no limit. */
  budget: z.looseObject({ usdPerMonth: z.number().positive() }).optional(),
  runTableName: z.string().optional(),
  guardrails: z
    .looseObject({
      allowedInstanceTypes: z.array(z.string()).optional(),
      maxInstancesPerRun: z.number().optional(),
      maxConcurrentInstances: z.number().optional(),
      maxCostPerRunUsd: z.number().optional(),
      maxRuntimeSeconds: z.number().optional(),
      allowedImages: z.array(z.string()).optional(),
      requireNetworkIsolation: z.boolean().optional(),
      allowRemoteDebug: z.boolean().optional(),
    })
    .optional(),
  controlAliasArn: z.string().optional(),
  /** Alias of the read-only function for auditors; absent = the environment has no auditors. */
  auditAliasArn: z.string().optional(),
  driver: z.looseObject({ uri: z.string(), hash: z.string() }).optional(),
});

/** Information about a deployed environment for command line and control. */
export type Descriptor = z.output<typeof descriptorSchema>;

/** Teams with a key of their own: `own`, or the ARN of an existing key. */
export const teamKeysOf = (teams: EnvironmentSpec['teams']): Record<string, string> =>
  Object.fromEntries(
    Object.entries(teams).flatMap(([team, { kmsKey = 'shared' }]) => (kmsKey === 'shared' ? [] : [[team, kmsKey]])),
  );

/** Key for the output of a job; undefined: the default of the service. */
export const writingKey = ({
  teamKeyArn,
  kmsKeyArn,
}: Pick<Descriptor, 'kmsKeyArn' | 'teamKeyArn'>): string | undefined => teamKeyArn ?? kmsKeyArn;
