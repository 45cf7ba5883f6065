import { Logger } from '@aws-lambda-powertools/logger';
import { KMSClient } from '@aws-sdk/client-kms';
import { S3Client } from '@aws-sdk/client-s3';
import { type Issue, issue } from '../../core/config/issue';
import { existingStorageSchema } from '../../core/contracts/custom-resources';
import { type StorageProbe, storageProbes } from '../../shared/aws/existing-storage';
import { clientSettings, s3Settings } from '../shared/clients';
import { acceptingRollback, entryPoint, isNamed, refuseErrors, whileItExists } from '../shared/custom-resource';

/**
 * Checks existing buckets and an existing key before anything that uses them is created. Create and update fail with all issues at once;
 * warnings go to the log. Delete does nothing: buckets and key are not changed.
 */
export const onEvent = whileItExists(existingStorageSchema, async (deps: ReturnType<typeof makeDeps>, properties) => {
  const probes = storageProbes(deps, properties);
  refuseErrors((await Promise.all(probes.map(unlessDenied))).flat(), (message) => deps.warn(message));
  return { PhysicalResourceId: 'existing-storage' };
});

/**
 * The role of this function has permission to read these resources, so a denial comes from the policy of the bucket or key, or from its
 * account.
 */
async function unlessDenied({ what, name, findIssues }: StorageProbe): Promise<Issue[]> {
  try {
    return await findIssues();
  } catch (error) {
    if (!isNamed(error, 'AccessDenied', 'AccessDeniedException', 'Forbidden', '403')) throw error;
    const path = what === 'key' ? 'storage.kmsKeyArn' : `storage.buckets.${what}`;
    return [
      issue('preflight/storage', 'error', path, {
        must: 'must belong to the account of the environment and let its roles look at its settings',
        got: `${name}, which denies it`,
        fix: 'name one of the account, or change its policy; data of other accounts can be named under storage.external',
      }),
    ];
  }
}

function makeDeps() {
  const logger = new Logger({ serviceName: 'existing-storage' });
  const s3 = new S3Client(s3Settings(process.env));
  return { s3, kms: new KMSClient(clientSettings), warn: (message: string) => logger.warn(message) };
}

export const handler = entryPoint(makeDeps, onEvent, acceptingRollback);
