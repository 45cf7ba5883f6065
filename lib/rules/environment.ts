import { findInstanceType, nearestInstanceTypes } from '../catalog/instances';
import { nearest } from '../catalog/nearest';
import { instanceQuota } from '../catalog/quotas';
import { REGIONS } from '../catalog/regions';
import { type EnvironmentFile, type EnvironmentSpec, resolveEnvironments } from '../spec/environment-file';
import { type Issue, issue, orList } from '../spec/issue';

/** Throughput per TiB that FSx for Lustre sells on PERSISTENT_2: https://docs.aws.amazon.com/fsx/latest/LustreGuide/performance.html */
const FSX_THROUGHPUT = [125, 250, 500, 1000];
const IMAGE_KINDS = ['environment', 'dlc', 'smp', 'huggingface', 'uri'];

/** What is wrong with an environment file beyond its schema, region by region, each finding once. */
export function checkEnvironment(file: EnvironmentFile): Issue[] {
  const found = [
    ...Object.keys(file.regions).flatMap(knownRegion),
    ...resolveEnvironments(file).flatMap((e) => [
      ...networkIssues(e),
      ...storageIssues(e),
      ...quotaIssues(e),
      ...guardrailIssues(e),
      ...imageIssues(e),
    ]),
  ];
  return [...new Map(found.map((i) => [`${i.rule} ${i.message}`, i])).values()];
}

const error = (rule: string, path: string, must: string, got: unknown, fix: string): Issue =>
  issue(rule, 'error', path, got === undefined ? { must, fix } : { must, got, fix });

function knownRegion(region: string): Issue[] {
  if (region in REGIONS) return [];
  const near = orList(nearest(region, Object.keys(REGIONS)));
  return [
    error('environment/region', `regions.${region}`, 'must be a region with SageMaker images', region, `use ${near}`),
  ];
}

function networkIssues({ network }: EnvironmentSpec): Issue[] {
  const { mode, existing, packages, wheels, codeArtifact } = network;
  return [
    ...(mode === 'existing' && !existing
      ? [
          error(
            'environment/network',
            'network.existing',
            'must be given with mode existing',
            undefined,
            'add vpcId, subnetIds and securityGroupIds',
          ),
        ]
      : []),
    ...(mode !== 'existing' && existing
      ? [
          error(
            'environment/network',
            'network.existing',
            `must go with mode existing, not ${mode}`,
            existing.vpcId,
            'set mode: existing, or remove it',
          ),
        ]
      : []),
    ...(packages === 'wheels' && !wheels
      ? [
          error(
            'environment/network',
            'network.wheels',
            'must be given with packages wheels',
            undefined,
            'add wheels: s3://bucket/prefix/',
          ),
        ]
      : []),
    ...(packages === 'codeartifact' && !codeArtifact
      ? [
          error(
            'environment/network',
            'network.codeArtifact',
            'must be given with packages codeartifact',
            undefined,
            'add codeArtifact: { domain, repository }',
          ),
        ]
      : []),
  ];
}

function storageIssues({ storage, network }: EnvironmentSpec): Issue[] {
  const fsx = storage.fsxLustre;
  const systems = Object.entries(storage.fileSystems ?? {});
  const noVpc = network.mode === 'none';
  return [
    ...(fsx && noVpc
      ? [
          error(
            'environment/file-system',
            'storage.fsxLustre',
            'must be in a VPC',
            'network.mode none',
            'use network.mode vpc-locked',
          ),
        ]
      : []),
    ...(fsx && fsx.sizeGiB !== 1200 && fsx.sizeGiB % 2400 !== 0
      ? [
          error(
            'environment/file-system',
            'storage.fsxLustre.sizeGiB',
            'must be 1200 or a multiple of 2400',
            fsx.sizeGiB,
            `use ${Math.max(1, Math.ceil(fsx.sizeGiB / 2400)) * 2400}`,
          ),
        ]
      : []),
    ...(fsx?.throughputMBpsPerTiB !== undefined && !FSX_THROUGHPUT.includes(fsx.throughputMBpsPerTiB)
      ? [
          error(
            'environment/file-system',
            'storage.fsxLustre.throughputMBpsPerTiB',
            `must be ${orList(FSX_THROUGHPUT)}`,
            fsx.throughputMBpsPerTiB,
            'use one of them',
          ),
        ]
      : []),
    ...systems
      .filter(([, s]) => (s.fsxLustre === undefined) === (s.efs === undefined))
      .map(([name]) =>
        error(
          'environment/file-system',
          `storage.fileSystems.${name}`,
          'must name exactly one of fsxLustre and efs',
          undefined,
          'keep one',
        ),
      ),
  ];
}

function quotaIssues({ quotas }: EnvironmentSpec): Issue[] {
  return quotas.require.flatMap(({ instanceType, usage }, i) => {
    const path = `quotas.require[${i}].instanceType`;
    if (!findInstanceType(instanceType))
      return [
        error(
          'environment/instance-type',
          path,
          'must be a SageMaker training instance type',
          instanceType,
          `use for example ${orList(nearestInstanceTypes(instanceType))}`,
        ),
      ];
    const quota = instanceQuota(instanceType, usage);
    return quota.code
      ? []
      : [
          issue('environment/quota-code', 'warning', path, {
            must: `must have a known quota code; "${quota.name}" is looked up by its name at deploy`,
            got: instanceType,
            fix: 'nothing, unless the deploy says that the region has no such quota',
          }),
        ];
  });
}

function guardrailIssues({ guardrails }: EnvironmentSpec): Issue[] {
  const images = guardrails.allowedImages ?? [];
  return images
    .filter((name) => !IMAGE_KINDS.includes(name) && !name.includes('.'))
    .map((name) =>
      error(
        'environment/guardrails',
        `guardrails.allowedImages[${images.indexOf(name)}]`,
        `must be ${orList(IMAGE_KINDS)} or the beginning of an image URI`,
        name,
        'use one of them',
      ),
    );
}

function imageIssues({ image }: EnvironmentSpec): Issue[] {
  return image.uri !== undefined && image.build && image.base !== 'pytorch-2.13'
    ? [
        error(
          'environment/image',
          'image.uri',
          'must not be given together with image.base',
          image.uri,
          'keep one of the two',
        ),
      ]
    : [];
}
