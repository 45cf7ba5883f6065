import { RemovalPolicy } from 'aws-cdk-lib';
import * as dynamodb from 'aws-cdk-lib/aws-dynamodb';
import type { Construct } from 'constructs';
import { runTableName } from '../../core/contracts/names';
import { ACTIVE_INDEX, RUN_TABLE, TEAM_INDEX } from '../../core/contracts/storage';
import type { TrainingLauncherProps } from '../launcher/training-launcher';

const text = (name: string): dynamodb.Attribute => ({ name, type: dynamodb.AttributeType.STRING });

/** The run table with its two indexes (lib/core/contracts/storage.ts), or the one that an earlier stack retained. */
export function runTable(scope: Construct, props: TrainingLauncherProps): dynamodb.ITable {
  const named = { tableName: runTableName(props.environment), encryptionKey: props.storage.key };
  if (props.adopt)
    return dynamodb.Table.fromTableAttributes(scope, 'Runs', {
      ...named,
      globalIndexes: [ACTIVE_INDEX.name, TEAM_INDEX.name],
    });
  const table = new dynamodb.Table(scope, 'Runs', {
    ...named,
    partitionKey: text(RUN_TABLE.partitionKey),
    sortKey: text(RUN_TABLE.sortKey),
    timeToLiveAttribute: RUN_TABLE.expiresAt,
    billingMode: dynamodb.BillingMode.PAY_PER_REQUEST,
    encryption: dynamodb.TableEncryption.CUSTOMER_MANAGED,
    pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
    deletionProtection: props.tableDeletionProtection || undefined,
    removalPolicy: props.retain === false ? RemovalPolicy.DESTROY : RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
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
