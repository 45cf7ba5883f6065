// What the SDK does with a bucket of another region, over a connection of our own.
import { Readable } from 'node:stream';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { expect, test } from 'vitest';
import { clientForAddresses } from '../../../lib/cli/runs/reports/committed-checkpoints';

test('the client asks again where the redirect says, signed for that region', async () => {
  const sent: [host: string, scope: string][] = [];
  const client = clientForAddresses('us-west-2');
  const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'none' };
  Object.assign(client.config, {
    credentials: async () => credentials,
    requestHandler: {
      handle: async ({ hostname, headers }: { hostname: string; headers: Record<string, string> }) => {
        sent.push([hostname, /Credential=[^/]+\/\d+\/([^/]+)/.exec(headers.authorization ?? '')?.[1] ?? '']);
        const isThere = hostname.includes('eu-west-1');
        const response = isThere
          ? { statusCode: 200, headers: {}, body: Readable.from([]) }
          : { statusCode: 301, headers: { 'x-amz-bucket-region': 'eu-west-1' }, body: Readable.from([]) };
        return { response };
      },
    },
  });
  await client.send(new PutObjectCommand({ Bucket: 'company-models', Key: 'llama/slipway.json', Body: '{}' }));
  expect(sent).toEqual([
    ['company-models.s3.us-west-2.amazonaws.com', 'us-west-2'],
    ['company-models.s3.eu-west-1.amazonaws.com', 'eu-west-1'],
  ]);
});
