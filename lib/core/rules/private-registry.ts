import { orList } from '../config/issue';
import { type Rule, rule, when } from '../config/rule';

/** An address of Amazon ECR or of its public gallery, for which private registry options do not apply. */
const ECR = /^\d{12}\.dkr\.ecr(-fips)?\.[a-z0-9-]+\.amazonaws\.com(\.cn)?\//;

/** Rules for images in registries outside Amazon ECR. */
export const PRIVATE_REGISTRY_RULES: readonly Rule[] = [
  rule('image/private-registry', 'error, local', ({ kind, image }) => {
    const { repositoryAccess, credentialsProviderArn, uri } = image;
    const isVpc = repositoryAccess === 'vpc';
    return [
      ...when(isVpc && image.kind !== 'uri', 'image.repositoryAccess', {
        must: 'must be used with kind uri',
        fix: 'set kind: uri with the URI of the image, or remove it',
      }),
      ...when(isVpc && image.kind === 'uri' && ECR.test(uri ?? ''), 'image.repositoryAccess', {
        must: 'must be platform for an image in Amazon ECR',
        fix: 'remove it',
      }),
      ...when(credentialsProviderArn !== undefined && !isVpc, 'image.credentialsProviderArn', {
        must: 'must be used with repositoryAccess vpc',
        fix: 'set repositoryAccess: vpc, or remove it',
      }),
      ...when(isVpc && kind === 'processing', 'image.repositoryAccess', {
        must: 'must be platform for a processing run: CreateProcessingJob only supports images in Amazon ECR',
        fix: 'push the image to Amazon ECR',
      }),
    ];
  }),
  rule('image/registry-reach', 'error', ({ image }, { descriptor }) => {
    if (!descriptor || image.repositoryAccess !== 'vpc') return [];
    const providers = descriptor.credentialsProviders ?? [];
    const provider = image.credentialsProviderArn;
    return [
      ...when(descriptor.subnetIds.length === 0, 'image.repositoryAccess', {
        must: 'must be platform in an environment without a VPC',
        fix: 'launch into an environment whose subnets can reach the registry',
      }),
      ...when(provider !== undefined && !providers.includes(provider), 'image.credentialsProviderArn', {
        must:
          providers.length > 0
            ? `must be a function that roles of environment ${descriptor.name} may call (${orList(providers)})`
            : `must be absent: roles of environment ${descriptor.name} may call no such function`,
        fix: 'ask the platform team to add it to image.credentialsProviders',
      }),
    ];
  }),
  /** SageMaker pulls an image from Amazon ECR unless the registry is marked as private. */
  rule('image/outside-ecr', 'error, local', ({ image }) => {
    const { kind, uri, repositoryAccess } = image;
    return when(kind === 'uri' && uri !== undefined && !ECR.test(uri) && repositoryAccess !== 'vpc', 'image.uri', {
      must: 'must be an image in Amazon ECR unless repositoryAccess is vpc',
      fix: 'push the image to Amazon ECR, or set repositoryAccess: vpc for a private registry that the subnets can reach',
    });
  }),
];
