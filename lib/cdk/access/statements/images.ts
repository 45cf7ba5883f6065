import { awsRepositories } from '../../../core/catalog/images/images';
import type { JobRoleContext } from '../job-role-context';
import type { ExactStatement } from '../statement';

/** The images that jobs may pull. */
export function imageStatements(context: JobRoleContext): ExactStatement[] {
  return [
    {
      sid: 'LogInToRegistries',
      actions: ['ecr:GetAuthorizationToken'],
      resources: ['*'],
      wildcard: 'The token is for the registry: the action has no resource type.',
    },
    {
      sid: 'PullImages',
      actions: ['ecr:BatchCheckLayerAvailability', 'ecr:GetDownloadUrlForLayer', 'ecr:BatchGetImage'],
      resources: imageRepositories(context),
      wildcard: 'Without guardrails.allowedImages any image of this account may be used.',
    },
  ];
}

/** ARNs of the repositories that jobs may pull from. */
export function imageRepositories(context: JobRoleContext): string[] {
  const { partition, region, account, allowedImages } = context;
  const arn = (owner: string, name: string) => `arn:${partition}:ecr:${region}:${owner}:repository/${name}`;
  const allows = (kind: string) => !allowedImages || allowedImages.includes(kind);
  const given = context.imageUri !== undefined && allows('environment') ? [context.imageUri] : [];
  const named = [...given, ...(allowedImages ?? [])].flatMap((prefix) => repositoriesBelow(partition, prefix));
  return [
    ...(context.repositoryName && allowedImages && allows('environment') ? [arn(account, context.repositoryName)] : []),
    ...(allowedImages ? [] : [arn(account, '*')]),
    ...named,
    ...awsRepositories(region).flatMap(({ kind, account: owner, repository }) =>
      allows(kind) ? [arn(owner, repository)] : [],
    ),
  ];
}

/** The repositories that a prefix of an image URI allows, as in the rule `guardrails/images`: one by name, and those below it. */
function repositoriesBelow(partition: string, prefix: string): string[] {
  const found = /^(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.[a-z.]+(?:\/([^:@]*)([:@].*)?)?$/.exec(prefix);
  if (!found) return [];
  const [, owner, region, name = '', version] = found;
  const repository = (text: string) => `arn:${partition}:ecr:${region}:${owner}:repository/${text}`;
  if (version !== undefined) return [repository(name)];
  return name === '' || name.endsWith('/') ? [repository(`${name}*`)] : [repository(name), repository(`${name}/*`)];
}
