import type { EnvironmentSpec } from '../../config/environment-file';
import { when } from '../../config/rule';
import type { EnvironmentFinding, EnvironmentRule } from './environment-rule';

const API = 'https://docs.aws.amazon.com/sagemaker/latest/APIReference';

/** Findings for functions and hubs that jobs in another region, or with roles of another account, cannot use. */
function foreignArns({ account, region, image, storage }: EnvironmentSpec): EnvironmentFinding[] {
  const named = [
    ...(image.credentialsProviders ?? []).map((arn, i) => ({ path: `image.credentialsProviders[${i}]`, arn })),
    ...(storage.hubs ?? []).map((arn, i) => ({ path: `storage.hubs[${i}]`, arn })),
  ];
  return named.flatMap(({ path, arn }) => {
    const [, , , there, owner] = arn.split(':');
    return [
      ...when(there !== region, {
        path,
        must: `must be in ${region}, like the jobs`,
        got: arn,
        fix: `use the one in ${region}, under regions.${region} if the environment has several regions`,
      }),
      // A hub may be shared by another account (AWS RAM); a function is called with a role of this account.
      ...when(path.startsWith('image.') && account !== undefined && owner !== account, {
        path,
        must: `must be in account ${account}`,
        got: arn,
        fix: 'use a function in that account',
      }),
    ];
  });
}

/** Rules for sources of images and models other than ECR and buckets. */
export const IMAGE_SOURCE_RULES: readonly EnvironmentRule[] = [
  {
    id: 'environment/image-sources',
    level: 'error',
    what: 'Hubs and credentials functions of private registries are in the region of the environment.',
    why: 'SageMaker calls the function and reads the hub in the region of the job; a job would fail after its instances were allocated.',
    source: `${API}/API_TrainingRepositoryAuthConfig.html`,
    reads: ['image', 'storage', 'account'],
    check: foreignArns,
  },
];
