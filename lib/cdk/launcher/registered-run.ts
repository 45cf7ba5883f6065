import { hash } from 'node:crypto';
import { CfnOutput, type CustomResource, Duration } from 'aws-cdk-lib';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import { Construct } from 'constructs';
import type { RunSpec } from '../../core/config/run-spec';
import { REGISTERED_RUN_TYPE } from '../../core/contracts/custom-resources';
import { REGISTERED_RUN_TIMEOUT_SECONDS } from '../../core/contracts/launcher';
import type { Archive } from '../../shared/archive/archive';
import { generatedAsset } from '../functions/handler-function';
import { customResource } from '../functions/handler-resource';

export interface RegisteredRunProps {
  /** Name of the run, as in its file. */
  readonly runName: string;
  /** Text of the run file. */
  readonly runFile: string;
  /** Archive of its custom code. @default - the run has none */
  readonly code?: Archive;
  /** Alias of the launcher's control function for the run's team. */
  readonly alias: lambda.IAlias;
}

/**
 * A run that the deploy submits when its file or its code has changed: `submit: on-change`. It must depend on everything else. Once
 * submitted it is a run like any other, and costs what its instances cost.
 */
export class RegisteredRun extends Construct {
  /** The custom resource that submits the run. */
  public readonly resource: CustomResource;

  constructor(scope: Construct, id: string, props: RegisteredRunProps) {
    super(scope, id);
    const { runName, runFile, code, alias } = props;
    const fileAsset = generatedAsset(this, 'File', 'run.yaml', runFile);
    const codeAsset = code && generatedAsset(this, 'Code', 'code.tar.gz', code.bytes);
    const assets = [fileAsset, ...(codeAsset ? [codeAsset] : [])];
    this.resource = customResource(this, 'Run', {
      resourceType: REGISTERED_RUN_TYPE,
      handler: 'registered-run',
      description: `Submits run ${runName} when it has changed`,
      timeout: Duration.seconds(REGISTERED_RUN_TIMEOUT_SECONDS),
      statements: [
        { sid: 'SubmitRun', actions: ['lambda:InvokeFunction'], resources: [alias.functionArn] },
        {
          sid: 'ReadRunFiles',
          actions: ['s3:GetObject'],
          resources: assets.map((asset) => asset.bucket.arnForObjects(asset.s3ObjectKey)),
        },
      ],
      serviceTimeout: Duration.minutes(6),
      properties: {
        controlAliasArn: alias.functionArn,
        hash: hash('sha256', `${runFile}\n${code?.sha256 ?? ''}`),
        assetBucket: fileAsset.s3BucketName,
        runFileKey: fileAsset.s3ObjectKey,
        ...(codeAsset && { codeKey: codeAsset.s3ObjectKey, codeSha256: code.sha256 }),
      },
    });
    new CfnOutput(this, 'Id', {
      value: this.resource.getAttString('RunId'),
      description: `Run of ${runName} that the deploy submitted`,
    });
  }
}

/** A run with the current content of its file and its code. */
export interface RunSubmission {
  /** The run, after its checks. */
  readonly run: RunSpec;
  /** One of the environment's teams. */
  readonly team: string;
  /** Text of the run file. */
  readonly runFile: string;
  /** Archive of the run's custom code. @default - none */
  readonly code?: Archive;
}
