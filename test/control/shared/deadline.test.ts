import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DescribeTrainingJobCommand, SageMakerClient } from '@aws-sdk/client-sagemaker';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { clientSettings, onceSettings } from '../../../lib/control/shared/clients';
import { Deadline } from '../../../lib/control/shared/deadline';
import { endsAfter } from '../../../lib/shared/aws/ends-after';

/** Accepts connections of this process and never answers. */
let silent: Server;
let endpoint: string;
beforeEach(async () => {
  silent = createServer(() => undefined);
  await new Promise<void>((done) => silent.listen(0, '127.0.0.1', done));
  endpoint = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
});
afterEach(() => {
  silent.closeAllConnections();
  silent.close();
});

const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
const describeJob = (client: SageMakerClient) => client.send(new DescribeTrainingJobCommand({ TrainingJobName: 'x' }));

describe('a service that does not answer', () => {
  test.each(Object.entries({ clientSettings, onceSettings }))(
    'ends a call with %s at its time-out',
    async (_, settings) => {
      expect(settings.requestHandler).toEqual(endsAfter(settings.requestHandler.requestTimeout));
      const requestHandler = endsAfter(50);
      const client = new SageMakerClient({
        ...settings,
        maxAttempts: 1,
        region: 'us-west-2',
        endpoint,
        credentials,
        requestHandler,
      });
      await expect(describeJob(client)).rejects.toMatchObject({ name: 'TimeoutError' });
    },
  );

  test('holds no invocation beyond its deadline, whatever the time-out of a call', async () => {
    const deadline = new Deadline();
    const client = deadline.limit(
      new SageMakerClient({ ...clientSettings, region: 'us-west-2', endpoint, credentials }),
    );
    deadline.begin({ getRemainingTimeInMillis: () => 10_050 });
    await expect(describeJob(client)).rejects.toMatchObject({ name: 'AbortError' });
  });
});

test('time is kept back from the invocation for what follows a failed call', () => {
  const deadline = new Deadline();
  expect(deadline.remainingMs()).toBe(Number.POSITIVE_INFINITY);
  deadline.begin({ getRemainingTimeInMillis: () => 60_000 });
  expect(deadline.remainingMs()).toBe(50_000);
  deadline.begin({ getRemainingTimeInMillis: () => 3000 });
  expect(deadline.remainingMs()).toBe(0);
});
