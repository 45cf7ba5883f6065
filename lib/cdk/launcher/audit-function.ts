import { Duration } from 'aws-cdk-lib';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import { Construct } from 'constructs';
import { CONTROL_TIMEOUT_SECONDS, ENV } from '../../core/contracts/launcher';
import { auditStatements } from '../access/audit-policy';
import { allow } from '../access/statement';
import { HandlerFunction } from '../functions/handler-function';
import type { TrainingStorage } from '../storage/training-storage';
import { auditContext, type TrainingLauncher, teamAliases } from './training-launcher';

export interface AuditFunctionProps {
  /** Name of the environment. */
  readonly environment: string;
  /** Bucket of heartbeats, and the key of table and buckets. */
  readonly storage: Pick<TrainingStorage, 'checkpointBucket' | 'key'> & Partial<Pick<TrainingStorage, 'teamKeys'>>;
  /** Launcher whose runs are read; each of its teams gets an alias. */
  readonly launcher: Pick<TrainingLauncher, 'table' | 'operationsKey' | 'aliases'>;
}

/**
 * Answers `status`, `list`, `events` and `logs` for the runs of every team, for people who may not change anything: a separate function
 * whose role reads the run table, heartbeats and logs of jobs, and writes only its own log. Costs nothing while it is not invoked.
 *
 * ```ts
 * new AuditFunction(stack, 'Audit', { environment: 'research', storage, launcher });
 * ```
 */
export class AuditFunction extends Construct {
  /** The function; people may invoke only its aliases. */
  public readonly function: HandlerFunction;
  /** Its aliases, by team. */
  public readonly aliases: Readonly<Record<string, lambda.Alias>>;

  constructor(scope: Construct, id: string, props: AuditFunctionProps) {
    super(scope, id);
    const { environment, launcher } = props;
    this.function = new HandlerFunction(this, 'Function', {
      handler: 'audit',
      functionName: `slipway-${environment}-audit`,
      description: `Slipway ${environment}: status, list, events and logs of runs, for auditors`,
      timeout: Duration.seconds(CONTROL_TIMEOUT_SECONDS),
      memorySize: 512,
      encryptionKey: launcher.operationsKey,
      environment: { [ENV.environment]: environment, [ENV.runTable]: launcher.table.tableName },
    });
    allow(this.function.role, ...auditStatements(auditContext(this, props)));
    this.aliases = teamAliases(this, this.function, Object.keys(launcher.aliases));
  }
}
