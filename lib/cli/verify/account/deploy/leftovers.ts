import { DynamoDBClient, paginateListTables } from '@aws-sdk/client-dynamodb';
import { paginateDescribeRepositories } from '@aws-sdk/client-ecr';
import { paginateListRoles } from '@aws-sdk/client-iam';
import { KMSClient, paginateListAliases } from '@aws-sdk/client-kms';
import { paginateListFunctions } from '@aws-sdk/client-lambda';
import { ListBucketsCommand } from '@aws-sdk/client-s3';
import { GetParametersByPathCommand, SSMClient } from '@aws-sdk/client-ssm';
import type { ReadWorld } from '../read-world';

/** Whether a name starts with `slipway-<environment>`, followed by a hyphen or the end. */
const isOf = (name: string, environment: string) =>
  new RegExp(`^slipway-${environment}(-|$)`, 'i').test(name.split('/').pop() ?? '');

async function namesOf<Page>(
  pages: AsyncIterable<Page>,
  read: (page: Page) => (string | undefined)[],
): Promise<string[]> {
  const names: string[] = [];
  for await (const page of pages) names.push(...read(page).flatMap((name) => name ?? []));
  return names;
}

/** Remaining resources of an environment in the Region, as `kind name`: resources that cost money, hold data or block a name. */
export async function leftoversOf(world: ReadWorld, environment: string): Promise<string[]> {
  const { region, iam, ecr, lambda, s3 } = world;
  const dynamodb = new DynamoDBClient({ region });
  const kms = new KMSClient({ region });
  const listings: [string, Promise<string[]>][] = [
    [
      'bucket',
      s3.send(new ListBucketsCommand({})).then(({ Buckets = [] }) => Buckets.flatMap(({ Name }) => Name ?? [])),
    ],
    ['table', namesOf(paginateListTables({ client: dynamodb }, {}), (page) => page.TableNames ?? [])],
    [
      'repository',
      namesOf(paginateDescribeRepositories({ client: ecr }, {}), (page) =>
        (page.repositories ?? []).map((r) => r.repositoryName),
      ),
    ],
    ['role', namesOf(paginateListRoles({ client: iam }, {}), (page) => (page.Roles ?? []).map((r) => r.RoleName))],
    [
      'function',
      namesOf(paginateListFunctions({ client: lambda }, {}), (page) =>
        (page.Functions ?? []).map((f) => f.FunctionName),
      ),
    ],
    [
      'key alias',
      namesOf(paginateListAliases({ client: kms }, {}), (page) => (page.Aliases ?? []).map((a) => a.AliasName)),
    ],
  ];
  const found: string[] = [];
  for (const [kind, listing] of listings)
    found.push(
      ...(await listing)
        .filter((name) => isOf(name, environment) && ofRegion(kind, name, region))
        .map((name) => `${kind} ${name}`),
    );
  found.push(...(await parametersOf(region, environment)));
  return found;
}

/** Buckets and roles are listed for all Regions; their names contain the Region. */
const ofRegion = (kind: string, name: string, region: string) =>
  !['bucket', 'role'].includes(kind) || name.includes(region);

async function parametersOf(region: string, environment: string): Promise<string[]> {
  const Path = `/slipway/environments/${environment}/`;
  const { Parameters = [] } = await new SSMClient({ region }).send(
    new GetParametersByPathCommand({ Path, Recursive: true }),
  );
  return Parameters.map(({ Name }) => `parameter ${Name}`);
}
