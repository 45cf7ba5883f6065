import { CfnResource, RemovalPolicy, Stack } from 'aws-cdk-lib';
import * as fsx from 'aws-cdk-lib/aws-fsx';
import * as iam from 'aws-cdk-lib/aws-iam';
import type * as kms from 'aws-cdk-lib/aws-kms';
import { Construct, type IConstruct } from 'constructs';
import type { Descriptor } from '../../core/config/descriptor';
import type { EnvironmentSpec } from '../../core/config/environment-file';
import { dataRepositoryKeyStatements } from '../../core/contracts/storage';
import { isDeployed } from '../embedded-aws';
import type { EnvironmentStack } from '../environment-stack';

export interface LustreFileSystemProps {
  /** Subnet in the zone where jobs run. */
  readonly subnetId: string;
  /** Security groups whose rules for traffic between members include Lustre's ports. */
  readonly securityGroupIds: string[];
  /** Size in GiB: 1,200, 2,400 or a multiple of 2,400. */
  readonly sizeGiB: number;
  /** 125, 250, 500 or 1000. @default 250 */
  readonly throughputMBpsPerTiB?: number;
  /** Key of the file system, and of the bucket that it is linked to. */
  readonly key: kms.IKey;
  /** Name of the bucket, as text. Its objects appear as files below /data, and files written there become objects. */
  readonly dataBucketName: string;
  /** Whether the file system is retained when the stack is deleted, together with the parts of the network that it uses. @default true */
  readonly retain?: boolean;
  /**
   * VPC, subnet and security group with its rules: CloudFormation could not delete them while a retained file system uses them. @default -
   * none of the stack
   */
  readonly network?: readonly IConstruct[];
}

/** FSx for Lustre linked to the data bucket. Costs about 0.21 USD per GiB and month at 250 MB/s per TiB, used or not. */
export class LustreFileSystem extends Construct {
  /** Id of the file system, `fs-...`. */
  public readonly fileSystemId: string;
  /** First folder of every path on the file system. */
  public readonly mountName: string;

  constructor(scope: Construct, id: string, props: LustreFileSystemProps) {
    super(scope, id);
    const resource = new fsx.CfnFileSystem(this, 'Resource', {
      fileSystemType: 'LUSTRE',
      fileSystemTypeVersion: '2.15',
      storageCapacity: props.sizeGiB,
      subnetIds: [props.subnetId],
      securityGroupIds: props.securityGroupIds,
      kmsKeyId: props.key.keyArn,
      lustreConfiguration: {
        deploymentType: 'PERSISTENT_2',
        perUnitStorageThroughput: props.throughputMBpsPerTiB ?? 250,
        dataCompressionType: 'LZ4',
      },
    });
    // FSx tests whether the rules of the security groups allow Lustre's traffic, and the rules refer to their group.
    resource.node.addDependency(...ownResources(props.network ?? [], RULES));
    const isRetained = props.retain !== false;
    resource.applyRemovalPolicy(isRetained ? RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE : RemovalPolicy.DESTROY);
    if (isRetained) retainNetwork(props.network ?? []);
    const { partition, account, region, urlSuffix } = Stack.of(this);
    const bucketName = props.dataBucketName;
    for (const statement of dataRepositoryKeyStatements({ partition, account, region, urlSuffix, bucketName }))
      props.key.addToResourcePolicy(iam.PolicyStatement.fromJson(statement));
    new fsx.CfnDataRepositoryAssociation(this, 'Data', {
      fileSystemId: resource.ref,
      fileSystemPath: '/data',
      dataRepositoryPath: `s3://${props.dataBucketName}`,
      s3: {
        autoImportPolicy: { events: ['NEW', 'CHANGED', 'DELETED'] },
        autoExportPolicy: { events: ['NEW', 'CHANGED'] },
      },
    });
    this.fileSystemId = resource.ref;
    this.mountName = resource.attrLustreMountName;
  }
}

const RULES = ['AWS::EC2::SecurityGroupIngress', 'AWS::EC2::SecurityGroupEgress'];
const KEPT = ['AWS::EC2::VPC', 'AWS::EC2::Subnet', 'AWS::EC2::SecurityGroup', ...RULES];

/** The VPC, a subnet, and a security group with the rules that are separate resources. */
function retainNetwork(parts: readonly IConstruct[]): void {
  for (const resource of ownResources(parts, KEPT))
    resource.applyRemovalPolicy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE);
}

const ownResources = (parts: readonly IConstruct[], types: readonly string[]): CfnResource[] =>
  parts
    .flatMap((part) => [part.node.defaultChild, ...part.node.children])
    .filter((child) => CfnResource.isCfnResource(child))
    .filter(({ cfnResourceType }) => types.includes(cfnResourceType));

/**
 * File systems that the environment names, and the FSx for Lustre file system that it creates, by the names that run files use. Undefined
 * when there are none: an empty list would forbid all others.
 */
export function environmentFileSystems(stack: EnvironmentStack, spec: EnvironmentSpec): Descriptor['fileSystems'] {
  const { network, storage } = stack;
  const { fsxLustre, fileSystems, retain } = spec.storage;
  const subnetId = fsxLustre && network.subnetOfZone(fsxLustre.zoneId);
  if (!fsxLustre || !subnetId || !isDeployed(stack, 'lustre')) return fileSystems;
  const made = new LustreFileSystem(stack, 'Lustre', {
    subnetId,
    securityGroupIds: network.securityGroupIds,
    sizeGiB: fsxLustre.sizeGiB,
    throughputMBpsPerTiB: fsxLustre.throughputMBpsPerTiB,
    key: storage.key,
    dataBucketName: storage.dataBucketName,
    retain,
    network: network.partsIn(fsxLustre.zoneId),
  });
  const id = made.fileSystemId;
  const isShared = Object.keys(spec.teams).length > 1;
  return {
    fsx: { id, fsxLustre: id, directoryPath: `/${made.mountName}`, ...(isShared && { isShared }) },
    ...fileSystems,
  };
}
