import { readFileSync } from 'node:fs';
import https from 'node:https';
import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import { S3Client } from '@aws-sdk/client-s3';
import type { Service } from '../api-server';
import type { Hook, SessionCredentials, SignedRequest } from '../ministack/hook';
import { type ApiCall, type Caller, partitionOf, ServiceError, validationError } from '../wire/api-call';
import { permissionQuestions } from './iam-questions';

/** The principal that assumes execution roles. */
const SERVICE_PRINCIPAL = 'sagemaker.amazonaws.com';

/** The identity of callers and their IAM permissions, according to the embedded AWS. */
export class Authority {
  constructor(
    private readonly hook: Hook,
    /** Whether signatures are verified and permissions enforced. */
    readonly enforced: boolean,
  ) {}

  /** @throws ServiceError when enforcement is on and the credentials or the signature are wrong */
  async identify(request: SignedRequest): Promise<{ account: string; caller: Caller }> {
    const { account, arn, refused } = await this.hook.identify(request, this.enforced);
    if (refused) throw new ServiceError(refused.code, refused.message, 403);
    return { account, caller: { accessKeyId: request.accessKeyId, sessionToken: request.sessionToken, arn } };
  }

  /**
   * @param tagsOf tags of an existing resource
   * @throws ServiceError AccessDeniedException naming the first action that is not allowed
   */
  async requireAllowed(call: ApiCall, tagsOf?: Service['tagsOf']): Promise<void> {
    if (!this.enforced) return;
    const questions = permissionQuestions(call, partitionOf(call.region), tagsOf);
    const { accessKeyId, sessionToken, arn } = call.caller;
    const { decisions } = await this.hook.authorize({ accessKeyId, sessionToken, region: call.region, questions });
    questions.forEach(({ action, resource }, index) => {
      if (decisions[index] === 'Allow') return;
      const why =
        decisions[index] === 'Deny'
          ? 'with an explicit deny in an identity-based policy'
          : `because no identity-based policy allows the ${action} action`;
      const message = `User: ${arn} is not authorized to perform: ${action} on resource: ${resource} ${why}`;
      throw new ServiceError('AccessDeniedException', message);
    });
  }

  /** @throws ServiceError ValidationException unless the role exists and lets SageMaker assume it for this job */
  async requireServiceTrust(roleArn: string, call: ApiCall, jobArn: string): Promise<void> {
    const context = { 'aws:SourceAccount': call.account, 'aws:SourceArn': jobArn };
    const question = { roleArn, service: SERVICE_PRINCIPAL, region: call.region, context };
    const { trusted } = await this.hook.trusts(question);
    if (trusted) return;
    throw validationError(
      `Could not assume role ${roleArn}. Please ensure that the role exists and allows principal '${SERVICE_PRINCIPAL}' to ` +
        'assume the role.',
    );
  }
}

/** Credentials of a role, as the container credentials endpoint hands them out. */
export type RoleCredentials = SessionCredentials & { expiration: Date };

/** How long before their expiry credentials are replaced. */
const RENEW_BEFORE_MS = 5 * 60_000;
const SESSION_SECONDS = 3600;

/** Clients of the embedded AWS, with the sandbox's own credentials or those of a role. */
export class AwsAccess {
  private readonly agent?: https.Agent;

  /** @param certFile certificate authority of the endpoint, if it has one */
  constructor(
    private readonly endpoint: string,
    private readonly hook: Hook,
    certFile?: string,
  ) {
    if (certFile) this.agent = new https.Agent({ ca: readFileSync(certFile), keepAlive: true });
  }

  /** Credentials of `roleArn`, renewed before they expire; the session has the name that the service uses. */
  roleCredentials(roleArn: string): () => Promise<RoleCredentials> {
    let held: Promise<RoleCredentials> | undefined;
    let renewAt = 0;
    return () => {
      if (!held || Date.now() > renewAt) {
        renewAt = Date.now() + SESSION_SECONDS * 1000 - RENEW_BEFORE_MS;
        held = this.assume(roleArn);
        held.catch(() => {
          held = undefined;
        });
      }
      return held;
    };
  }

  s3(region: string, credentials: () => Promise<RoleCredentials>): S3Client {
    return new S3Client({ ...this.options(region), credentials, forcePathStyle: true });
  }

  logs(region: string, credentials: () => Promise<RoleCredentials>): CloudWatchLogsClient {
    return new CloudWatchLogsClient({ ...this.options(region), credentials });
  }

  close(): void {
    this.agent?.destroy();
  }

  private options(region: string) {
    return { endpoint: this.endpoint, region, ...(this.agent ? { requestHandler: { httpsAgent: this.agent } } : {}) };
  }

  private async assume(roleArn: string): Promise<RoleCredentials> {
    // The role's trust policy for the service was checked when the job was created (Authority), with the job's ARN as its source.
    const granted = await this.hook.assume(roleArn, 'SageMaker', SESSION_SECONDS);
    return { ...granted, expiration: new Date(Date.now() + SESSION_SECONDS * 1000) };
  }
}
