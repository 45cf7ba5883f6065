import { randomBytes } from 'node:crypto';
import { type Answer, type HttpServer, listen } from '../wire/http-server';
import type { RoleCredentials } from './authority';

/** Environment variables with which a container finds its credentials. */
export interface OfferedCredentials {
  env: Record<string, string>;
  revoke: () => void;
}

/**
 * Provides a container with its role's credentials as ECS and SageMaker do: SDKs request them from an address in the environment, again
 * before they expire. Plain HTTP on the loopback interface, because SDKs trust no private certificate authority there.
 */
export class CredentialEndpoint {
  private readonly offers = new Map<string, { credentials: () => Promise<RoleCredentials>; roleArn: string }>();

  private constructor(private server: HttpServer | undefined) {}

  static async open(): Promise<CredentialEndpoint> {
    const endpoint = new CredentialEndpoint(undefined);
    endpoint.server = await listen((request) => endpoint.answer(request.url ?? ''));
    return endpoint;
  }

  offer(credentials: () => Promise<RoleCredentials>, roleArn: string): OfferedCredentials {
    const path = `/credentials/${randomBytes(16).toString('hex')}`;
    this.offers.set(path, { credentials, roleArn });
    return {
      env: { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${this.server?.url}${path}` },
      revoke: () => this.offers.delete(path),
    };
  }

  async close(): Promise<void> {
    await this.server?.close();
  }

  private async answer(path: string): Promise<Answer> {
    const offer = this.offers.get(path);
    if (!offer) return { status: 404, body: { message: 'no credentials here' } };
    const { accessKeyId, secretAccessKey, sessionToken, expiration } = await offer.credentials();
    return {
      status: 200,
      body: {
        RoleArn: offer.roleArn,
        AccessKeyId: accessKeyId,
        SecretAccessKey: secretAccessKey,
        Token: sessionToken,
        Expiration: expiration.toISOString(),
      },
    };
  }
}
