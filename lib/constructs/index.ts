/** What another CDK app uses: the whole environment as a stack, or its parts alone. */
export { environmentQuotaNeeds, type QuotaNeed, runQuotaNeeds } from '../quota';
export { type EnvironmentSpec, resolveEnvironments } from '../spec/environment-file';
export { loadEnvironment, loadRun } from '../spec/load';
export { DriverPublish, type DriverPublishProps } from './driver-publish';
export { EnvironmentAccess, type EnvironmentAccessProps } from './environment-access';
export { EnvironmentStack, type EnvironmentStackProps } from './environment-stack';
export { type GuardProps, Guards } from './guards';
export { LustreFileSystem, type LustreFileSystemProps } from './lustre-file-system';
export { Observability, type ObservabilityProps } from './observability';
export { QuotaPreflight, type QuotaPreflightProps } from './quota-preflight';
export { isSandbox } from './sandbox-context';
export { SpendGuard, type SpendGuardProps } from './spend-guard';
export { TeamDescriptor, type TeamDescriptorProps } from './team-descriptor';
export { TrainingImage, type TrainingImageProps } from './training-image';
export { TrainingLauncher, type TrainingLauncherProps } from './training-launcher';
export { TrainingNetwork, type TrainingNetworkProps } from './training-network';
export { type TeamRoles, TrainingRoles, type TrainingRolesProps } from './training-roles';
export { TrainingStorage, type TrainingStorageProps } from './training-storage';
