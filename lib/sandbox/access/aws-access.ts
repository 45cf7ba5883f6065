import { readFileSync } from 'node:fs';
import https from 'node:https';
import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import { S3Client } from '@aws-sdk/client-s3';
import type { Hook } from '../ministack/hook';

/** Credentials of a role, as the container credentials endpoint hands them out. */
export interface RoleCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string;
  expiration: Date;
}

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
