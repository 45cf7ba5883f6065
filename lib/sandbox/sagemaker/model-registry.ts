import { createHash } from 'node:crypto';
import { type ApiCall, partitionOf, ServiceError, validationError } from '../wire/api-call';
import { JobStore } from './job-store';
import { tagMap } from './request-rules';

interface ModelGroup {
  name: string;
  arn: string;
  account: string;
  region: string;
  tags: Record<string, string>;
  versions: ModelVersion[];
}

/** A version of a group: the request and the fields that the service adds. */
interface ModelVersion {
  arn: string;
  version: number;
  createdAt: number;
  /** Client token of the request: the same token returns the same version. */
  token?: string;
  digest: string;
  request: Record<string, unknown>;
}

/** ARN of a group by its name, or the argument itself if it is an ARN. */
export const modelGroupArn = (
  { partition, region, account }: { partition: string; region: string; account: string },
  name: string,
): string =>
  name.startsWith('arn:') ? name : `arn:${partition}:sagemaker:${region}:${account}:model-package-group/${name}`;

/**
 * The part of the model registry that `slipway publish` uses: groups, and versions that are never validated
 * (https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateModelPackage.html, read 2026-11-23). Nothing is deployed from it.
 */
export class ModelRegistry {
  readonly operations: Readonly<Record<string, (call: ApiCall) => unknown>> = {
    CreateModelPackageGroup: (call) => this.createGroup(call),
    CreateModelPackage: (call) => this.createVersion(call),
    DescribeModelPackage: (call) => this.describeVersion(call),
  };
  readonly groups = new JobStore<ModelGroup>();

  private createGroup({ input, account, region }: ApiCall): unknown {
    const name = String(input.ModelPackageGroupName);
    const arn = modelGroupArn({ partition: partitionOf(region), region, account }, name);
    if (this.groups.find(account, region, name)) throw validationError(`Model Package Group already exists: ${arn}`);
    const tags = tagMap(input.Tags as { Key: string; Value: string }[] | undefined);
    this.groups.add({ name, arn, account, region, tags, versions: [] });
    return { ModelPackageGroupArn: arn };
  }

  private createVersion(call: ApiCall): unknown {
    const { ClientToken, ...request } = call.input;
    if (request.ModelPackageGroupName === undefined)
      throw validationError('The sandbox registers versions of model package groups only.');
    // A version uses the tags of its group, and may have none of its own.
    if (request.Tags !== undefined) throw validationError('Tags are not supported for versioned model packages.');
    const { account, region } = call;
    const name = String(request.ModelPackageGroupName).split('/').at(-1) ?? '';
    const group = this.groups.find(account, region, name);
    const groupArn = modelGroupArn({ partition: partitionOf(region), region, account }, name);
    if (!group) throw validationError(`ModelPackageGroup ${groupArn} does not exist.`);
    const token = ClientToken as string | undefined;
    const digest = createHash('sha256').update(JSON.stringify(request)).digest('hex');
    const same = token === undefined ? undefined : group.versions.find((one) => one.token === token);
    if (same && same.digest !== digest)
      throw new ServiceError('ConflictException', `The client token ${token} was used with another request.`);
    if (same) return { ModelPackageArn: same.arn };
    const version = (group.versions.at(-1)?.version ?? 0) + 1;
    const arn = `${group.arn.replace(':model-package-group/', ':model-package/')}/${version}`;
    group.versions.push({ arn, version, createdAt: Date.now(), token, digest, request });
    return { ModelPackageArn: arn };
  }

  private describeVersion(call: ApiCall): unknown {
    const arn = String(call.input.ModelPackageName);
    const group = this.groups.in(call.account, call.region).find(({ versions }) => versions.some((v) => v.arn === arn));
    const found = group?.versions.find((one) => one.arn === arn);
    if (!group || !found) throw validationError(`ModelPackage ${arn} does not exist.`);
    return {
      ModelApprovalStatus: 'PendingManualApproval',
      ...found.request,
      ModelPackageName: `${group.name}/${found.version}`,
      ModelPackageGroupName: group.name,
      ModelPackageVersion: found.version,
      ModelPackageArn: arn,
      CreationTime: found.createdAt / 1000,
      ModelPackageStatus: 'Completed',
      ModelPackageStatusDetails: { ValidationStatuses: [] },
    };
  }
}
