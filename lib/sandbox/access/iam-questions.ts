import type {
  CreateModelPackageCommandInput,
  CreateProcessingJobCommandInput,
  CreateTrainingJobCommandInput,
  UpdateTrainingJobCommandInput,
} from '@aws-sdk/client-sagemaker';
import type { PermissionQuestion } from '../ministack/hook';
import { modelGroupArn } from '../sagemaker/model-registry';
import { instanceTypesOf } from '../sagemaker/request-rules';
import type { ApiCall } from '../wire/api-call';

type Context = NonNullable<PermissionQuestion['context']>;

/**
 * Operations to which no edition of the Service Authorization Reference (retrieved 2026-11-21) assigns a resource type. If the editions
 * differ, as for GetServiceQuota, the rule `action-resources` of the emulator checks both.
 */
const WITHOUT_RESOURCE =
  /^(List(TrainingJobs|ProcessingJobs|Service|AWSDefault|RequestedServiceQuotaChangeHistory$)|GetAWSDefault)/;

/**
 * The permissions that IAM must grant for a call: the operation on its resource with the condition keys of the request, the tags of a new
 * or an existing resource, and PassRole for the role with `iam:PassedToService`.
 */
export function permissionQuestions(
  call: ApiCall,
  partition: string,
  tagsOfResource: (arn: string) => Readonly<Record<string, string>> | undefined = () => undefined,
): PermissionQuestion[] {
  const prefix = call.service === 'SageMaker' ? 'sagemaker' : 'servicequotas';
  const resource = resourceOf(call, partition);
  const tags = Object.entries(tagsOfResource(resource) ?? {});
  const resourceTags = Object.fromEntries(tags.map(([key, value]) => [`aws:ResourceTag/${key}`, value]));
  const own = { action: `${prefix}:${call.operation}`, resource, context: { ...contextOf(call), ...resourceTags } };
  const questions: PermissionQuestion[] = [own];
  if (call.operation.startsWith('Create')) {
    const tagging = { ...own.context, 'sagemaker:TaggingAction': call.operation };
    if (tagsOf(call).length > 0) questions.push({ action: 'sagemaker:AddTags', resource, context: tagging });
    for (const plan of trainingPlansOf(call)) questions.push(...planQuestions(own, plan));
    if (call.input.RoleArn === undefined) return questions;
    const passed = { 'iam:PassedToService': 'sagemaker.amazonaws.com', 'iam:AssociatedResourceArn': resource };
    questions.push({ action: 'iam:PassRole', resource: String(call.input.RoleArn), context: passed });
  }
  return questions;
}

function resourceOf(call: ApiCall, partition: string): string {
  const { input } = call;
  if (call.service !== 'SageMaker') {
    const quota = `arn:${partition}:servicequotas:${call.region}:${call.account}:${input.ServiceCode}/${input.QuotaCode}`;
    return WITHOUT_RESOURCE.test(call.operation) ? '*' : quota;
  }
  if (WITHOUT_RESOURCE.test(call.operation)) return '*';
  if (input.ResourceArn !== undefined) return String(input.ResourceArn);
  const group = input.ModelPackageGroupName ?? input.ModelPackageName;
  // A version is authorized on its group, because its number is not known before it exists.
  if (group !== undefined) return modelGroupArn({ ...call, partition }, String(group));
  const [type, name] =
    input.TrainingJobName === undefined
      ? ['processing-job', input.ProcessingJobName]
      : ['training-job', input.TrainingJobName];
  return `arn:${partition}:sagemaker:${call.region}:${call.account}:${type}/${String(name).toLowerCase()}`;
}

/** Training plans that the request names, for the job or for one of its instance preferences. */
function trainingPlansOf(call: ApiCall): string[] {
  const { ResourceConfig: config } = call.input as unknown as CreateTrainingJobCommandInput;
  const plans = [config?.TrainingPlanArn, ...(config?.InstancePreferences ?? []).flatMap((p) => p.TrainingPlanArns)];
  return plans.filter((plan) => plan !== undefined);
}

/**
 * A job in a training plan is also authorized on the plan and on its reserved capacity, whose ARN nobody can know in advance. Source:
 * resource types of CreateTrainingJob in the Service Authorization Reference, retrieved 2026-11-21.
 */
function planQuestions(own: PermissionQuestion, plan: string): PermissionQuestion[] {
  const capacity = plan.replace(/:training-plan\/.*$/, ':reserved-capacity/behind-the-plan');
  return [plan, capacity].map((resource) => ({ ...own, resource }));
}

const tagsOf = (call: ApiCall) => (call.input.Tags ?? []) as { Key: string; Value: string }[];

/** Condition keys of a request: https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsagemaker.html, 2026-11-21. */
function contextOf(call: ApiCall): Context {
  const tags = tagsOf(call);
  const quota = call.service === 'SageMaker' ? {} : { 'servicequotas:service': call.input.ServiceCode as string };
  return {
    ...Object.fromEntries(tags.map(({ Key, Value }) => [`aws:RequestTag/${Key}`, Value])),
    ...present({ ...quota, 'aws:TagKeys': tags.map((tag) => tag.Key) }),
    ...present(CONTEXTS[call.operation]?.(call.input as never) ?? {}),
  };
}

type Keys = Record<string, string | string[] | number | boolean | undefined>;

/** Condition keys of the service's own, by operation. An update contains neither type nor number of instances. */
const CONTEXTS: Readonly<Record<string, (input: never) => Keys>> = {
  CreateTrainingJob: ({ ResourceConfig: config = {}, ...request }: CreateTrainingJobCommandInput) => ({
    'sagemaker:InstanceTypes': instanceTypesOf(config),
    'sagemaker:VpcSubnets': request.VpcConfig?.Subnets,
    'sagemaker:VpcSecurityGroupIds': request.VpcConfig?.SecurityGroupIds,
    'sagemaker:KeepAlivePeriod': config.KeepAlivePeriodInSeconds,
    'sagemaker:VolumeKmsKey': config.VolumeKmsKeyId,
    'sagemaker:OutputKmsKey': request.OutputDataConfig?.KmsKeyId,
    'sagemaker:NetworkIsolation': request.EnableNetworkIsolation ?? false,
    'sagemaker:InterContainerTrafficEncryption': request.EnableInterContainerTrafficEncryption ?? false,
    'sagemaker:MaxRuntimeInSeconds': request.StoppingCondition?.MaxRuntimeInSeconds,
    'sagemaker:EnableRemoteDebug': request.RemoteDebugConfig?.EnableRemoteDebug,
  }),
  UpdateTrainingJob: ({ ResourceConfig, RemoteDebugConfig }: UpdateTrainingJobCommandInput) => ({
    'sagemaker:KeepAlivePeriod': ResourceConfig?.KeepAlivePeriodInSeconds,
    'sagemaker:EnableRemoteDebug': RemoteDebugConfig?.EnableRemoteDebug,
  }),
  CreateModelPackage: ({ ModelApprovalStatus }: CreateModelPackageCommandInput) => ({
    'sagemaker:ModelApprovalStatus': ModelApprovalStatus,
  }),
  CreateProcessingJob: ({ NetworkConfig: network, ...request }: CreateProcessingJobCommandInput) => {
    const { ClusterConfig: cluster } = request.ProcessingResources ?? {};
    return {
      'sagemaker:InstanceTypes': cluster?.InstanceType && [cluster.InstanceType],
      'sagemaker:VpcSubnets': network?.VpcConfig?.Subnets,
      'sagemaker:VpcSecurityGroupIds': network?.VpcConfig?.SecurityGroupIds,
      'sagemaker:VolumeKmsKey': cluster?.VolumeKmsKeyId,
      'sagemaker:OutputKmsKey': request.ProcessingOutputConfig?.KmsKeyId,
      'sagemaker:NetworkIsolation': network?.EnableNetworkIsolation ?? false,
      'sagemaker:InterContainerTrafficEncryption': network?.EnableInterContainerTrafficEncryption ?? false,
      'sagemaker:MaxRuntimeInSeconds': request.StoppingCondition?.MaxRuntimeInSeconds,
    };
  },
};

/** Keys that the request contains, with numbers and booleans as text; an empty list counts as absent. */
function present(keys: Keys): Context {
  const given = Object.entries(keys).filter(
    ([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0),
  );
  return Object.fromEntries(given.map(([key, value]) => [key, Array.isArray(value) ? value : String(value)]));
}
