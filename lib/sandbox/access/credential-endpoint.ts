import { randomBytes } from 'node:crypto';
import { listen } from '../wire/http-server';
import type { RoleCredentials } from './authority';

/**
 * Provides a container with its role's credentials as ECS and SageMaker do: SDKs request them from an address in the environment, again
 * before they expire. Plain HTTP on the loopback interface, because SDKs trust no private certificate authority there.
 */
export async function openCredentialEndpoint() {
  const offers = new Map<string, () => Promise<object>>();
  const server = await listen(async ({ url = '' }) => {
    const offer = offers.get(url);
    return offer ? { status: 200, body: await offer() } : { status: 404, body: { message: 'no credentials here' } };
  });
  /** Environment variables with which a container finds its credentials, until they are revoked. */
  const offer = (credentials: () => Promise<RoleCredentials>, roleArn: string) => {
    const path = `/credentials/${randomBytes(16).toString('hex')}`;
    offers.set(path, async () => {
      const { accessKeyId, secretAccessKey, sessionToken, expiration } = await credentials();
      return {
        RoleArn: roleArn,
        AccessKeyId: accessKeyId,
        SecretAccessKey: secretAccessKey,
        Token: sessionToken,
        Expiration: expiration.toISOString(),
      };
    });
    return { env: { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${server.url}${path}` }, revoke: () => offers.delete(path) };
  };
  return { offer, close: server.close };
}

export type CredentialEndpoint = Awaited<ReturnType<typeof openCredentialEndpoint>>;
