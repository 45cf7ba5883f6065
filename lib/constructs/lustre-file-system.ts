import { RemovalPolicy } from 'aws-cdk-lib';
import * as fsx from 'aws-cdk-lib/aws-fsx';
import type * as kms from 'aws-cdk-lib/aws-kms';
import type * as s3 from 'aws-cdk-lib/aws-s3';
import { Construct } from 'constructs';

export interface LustreFileSystemProps {
  /** Subnet in the zone where jobs run. */
  readonly subnetId: string;
  /** The group of the jobs: its rules for itself are Lustre's ports too. */
  readonly securityGroupIds: string[];
  readonly sizeGiB: number;
  /** 125, 250, 500 or 1000. @default 250 */
  readonly throughputMBpsPerTiB?: number;
  readonly key: kms.IKey;
  /** Its objects appear below /data as files, and files written there as objects. */
  readonly dataBucket: s3.IBucket;
  /** Whether the file system survives the stack. @default true */
  readonly retain?: boolean;
}

/** FSx for Lustre beside the data bucket. Costs about 0.21 USD per GiB and month at 250 MB/s per TiB, used or not. */
export class LustreFileSystem extends Construct {
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
    resource.applyRemovalPolicy(
      props.retain === false ? RemovalPolicy.DESTROY : RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    );
    new fsx.CfnDataRepositoryAssociation(this, 'Data', {
      fileSystemId: resource.ref,
      fileSystemPath: '/data',
      dataRepositoryPath: `s3://${props.dataBucket.bucketName}`,
      s3: {
        autoImportPolicy: { events: ['NEW', 'CHANGED', 'DELETED'] },
        autoExportPolicy: { events: ['NEW', 'CHANGED'] },
      },
    });
    this.fileSystemId = resource.ref;
    this.mountName = resource.attrLustreMountName;
  }
}
