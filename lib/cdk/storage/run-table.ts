import { RemovalPolicy } from 'aws-cdk-lib';
import * as dynamodb from 'aws-cdk-lib/aws-dynamodb';
import type * as kms from 'aws-cdk-lib/aws-kms';
import type { Construct } from 'constructs';
import { ACTIVE_INDEX, RUN_TABLE, TEAM_INDEX } from '../../core/contracts/storage';

/** Retention and protection of the run table. */
export interface RunTableOptions {
  readonly tableName: string;
  readonly key: kms.IKey;
  /** Whether the table is retained when the stack is deleted. */
  readonly retain: boolean;
  /** Whether to adopt the table of an earlier stack. */
  readonly adopt: boolean;
  /** Whether deletion protection is enabled for the table. */
  readonly deletionProtection: boolean;
}

const text = (name: string): dynamodb.Attribute => ({ name, type: dynamodb.AttributeType.STRING });

/** The run table with its two indexes (lib/core/contracts/storage.ts), or the one that an earlier stack retained. */
export function runTable(scope: Construct, id: string, options: RunTableOptions): dynamodb.ITable {
  const { tableName, key } = options;
  if (options.adopt) {
    return dynamodb.Table.fromTableAttributes(scope, id, {
      tableName,
      encryptionKey: key,
      globalIndexes: [ACTIVE_INDEX.name, TEAM_INDEX.name],
    });
  }
  const table = new dynamodb.Table(scope, id, {
    tableName,
    partitionKey: text(RUN_TABLE.partitionKey),
    sortKey: text(RUN_TABLE.sortKey),
    timeToLiveAttribute: RUN_TABLE.expiresAt,
    billingMode: dynamodb.BillingMode.PAY_PER_REQUEST,
    encryption: dynamodb.TableEncryption.CUSTOMER_MANAGED,
    encryptionKey: key,
    pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
    deletionProtection: options.deletionProtection || undefined,
    removalPolicy: options.retain ? RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE : RemovalPolicy.DESTROY,
  });
  table.addGlobalSecondaryIndex({
    indexName: ACTIVE_INDEX.name,
    partitionKey: text(ACTIVE_INDEX.partitionKey),
    sortKey: text(ACTIVE_INDEX.sortKey),
  });
  table.addGlobalSecondaryIndex({
    indexName: TEAM_INDEX.name,
    partitionKey: text(TEAM_INDEX.partitionKey),
    sortKey: text(TEAM_INDEX.sortKey),
  });
  return table;
}
