/** Public exports for other CDK apps: the whole environment as a stack, or its parts. */

export type { ModelShape } from '../core/catalog/model/shape';
export type { Descriptor } from '../core/config/descriptor';
export type { Guardrails, PreemptionTimes } from '../core/config/environment/limits';
export {
  type EnvironmentFile,
  type EnvironmentSpec,
  type Notifications,
  type QuotaRequirement,
  resolveEnvironments,
} from '../core/config/environment-file';
export type { Filled } from '../core/config/formats/field';
export type { Issue } from '../core/config/issue';
export { type Loaded, type LoadedEnvironment, type LoadedRun, loadEnvironment, loadRun } from '../core/config/load';
export type { PartialFile } from '../core/config/reading/partial-validation';
export type { Position } from '../core/config/reading/yaml-file';
export type { Architecture, RunFile } from '../core/config/run-file';
export type { RunSpec } from '../core/config/run-spec';
export { environmentQuotaNeeds, type QuotaNeed, runQuotaNeeds } from '../core/quota';
export { type Archive, archiveFolder, codeArchive } from '../shared/archive/archive';
export { EnvironmentAccess, type EnvironmentAccessProps } from './access/environment-access';
export type { JobGuardrails } from './access/job-guardrails';
export type { JobRoleContext } from './access/job-role-context';
export type { ExactStatement } from './access/statement';
export { type JobRoles, type TeamRoles, TrainingRoles, type TrainingRolesProps } from './access/training-roles';
export { isSandbox } from './embedded-aws';
export {
  EnvironmentPipeline,
  type EnvironmentPipelineProps,
  EnvironmentStage,
  type EnvironmentStageProps,
  type PipelineOptions,
  type SlipwayPipelineProps,
  slipwayPipeline,
} from './environment-pipeline';
export { EnvironmentStack, type EnvironmentStackProps } from './environment-stack';
export { HandlerFunction, type HandlerFunctionProps } from './functions/handler-function';
export { DriverPublish, type DriverPublishProps } from './image/driver-publish';
export { TrainingImage, type TrainingImageProps } from './image/training-image';
export { AuditFunction, type AuditFunctionProps } from './launcher/audit-function';
export {
  TeamDescriptor,
  type TeamDescriptorProps,
  TeamNames,
  type TeamNamesProps,
} from './launcher/environment-descriptor';
export { QuotaPreflight, type QuotaPreflightProps } from './launcher/quota-preflight';
export type { RunSubmission } from './launcher/registered-run';
export { RegisteredRun, type RegisteredRunProps } from './launcher/registered-run';
export { TrainingLauncher, type TrainingLauncherProps } from './launcher/training-launcher';
export { LustreFileSystem, type LustreFileSystemProps } from './network/environment-file-systems';
export { EnvironmentNetwork } from './network/environment-network';
export { TrainingNetwork, type TrainingNetworkProps } from './network/training-network';
export { ChatChannel, type ChatChannelProps } from './operations/chat-channel';
export { FailedInvocations, type FailedInvocationsProps } from './operations/failed-invocations';
export { type GuardProps, Guards } from './operations/guards';
export { Observability, type ObservabilityProps } from './operations/observability';
export { OperationsKey, type OperationsKeyProps } from './operations/operations-key';
export { SpendGuard, type SpendGuardProps } from './operations/spend-guard';
export { TeamDashboard, type TeamDashboardProps } from './operations/team-dashboard';
export {
  type EnvironmentsRead,
  type EnvironmentToMake,
  type Problem,
  readEnvironments,
} from './read-environments';
export { type SlipwayAppProps, slipwayApp } from './slipway-app';
export type { AdoptStorageProps, BucketToAdopt, ExistingBuckets } from './storage/storage-resources';
export { TrainingStorage, type TrainingStorageProps } from './storage/training-storage';
