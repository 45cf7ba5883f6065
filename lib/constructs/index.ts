/** What another CDK app uses: the whole environment as a stack, or its parts alone. */
export { type Archive, archiveFolder, codeArchive } from '../archive/archive';
export type { ModelShape } from '../catalog/model/shape';
export { environmentQuotaNeeds, type QuotaNeed, runQuotaNeeds } from '../quota';
export type { Descriptor } from '../spec/descriptor';
export type { Guardrails } from '../spec/environment/limits';
export {
  type EnvironmentFile,
  type EnvironmentSpec,
  type Notifications,
  type QuotaRequirement,
  resolveEnvironments,
} from '../spec/environment-file';
export type { Issue } from '../spec/issue';
export { type Loaded, type LoadedEnvironment, type LoadedRun, loadEnvironment, loadRun } from '../spec/load';
export type { PreemptionTimes } from '../spec/preemption-times';
export type { Architecture, RunFile } from '../spec/run-file';
export type { RunSpec } from '../spec/run-spec';
export type { Salvaged } from '../spec/salvage';
export type { Position } from '../spec/yaml-file';
export type { AdoptStorageProps, BucketToAdopt } from './adopt-storage';
export { ChatChannel, type ChatChannelProps } from './chat-channel';
export { DriverPublish, type DriverPublishProps } from './driver-publish';
export { EnvironmentAccess, type EnvironmentAccessProps } from './environment-access';
export { EnvironmentNetwork } from './environment-network';
export { EnvironmentStack, type EnvironmentStackProps, type RunSubmission } from './environment-stack';
export { type GuardProps, Guards } from './guards';
export { HandlerFunction, type HandlerFunctionProps } from './handler-function';
export type { JobGuardrails } from './job-guardrails';
export type { JobRoleContext } from './job-role-policy';
export { LustreFileSystem, type LustreFileSystemProps } from './lustre-file-system';
export { Observability, type ObservabilityProps } from './observability';
export { OperationsKey, type OperationsKeyProps } from './operations-key';
export { QuotaPreflight, type QuotaPreflightProps } from './quota-preflight';
export {
  type EnvironmentsRead,
  type EnvironmentToMake,
  type Problem,
  readEnvironments,
} from './read-environments';
export { RegisteredRun, type RegisteredRunProps } from './registered-run';
export { isSandbox } from './sandbox-context';
export { type SlipwayAppProps, slipwayApp } from './slipway-app';
export { SpendGuard, type SpendGuardProps } from './spend-guard';
export type { ExactStatement } from './statement';
export { TeamDescriptor, type TeamDescriptorProps, TeamNames, type TeamNamesProps } from './team-descriptor';
export { TrainingImage, type TrainingImageProps } from './training-image';
export { TrainingLauncher, type TrainingLauncherProps } from './training-launcher';
export { TrainingNetwork, type TrainingNetworkProps } from './training-network';
export { type TeamRoles, TrainingRoles, type TrainingRolesProps } from './training-roles';
export { TrainingStorage, type TrainingStorageProps } from './training-storage';
