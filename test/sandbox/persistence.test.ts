import { rmSync } from 'node:fs';
import { GetServiceQuotaCommand } from '@aws-sdk/client-service-quotas';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bashJob, create, describeJob, inState, type Lab, openLab, read, run, temporaryFolder } from './support';

const P5 = { ServiceCode: 'sagemaker', QuotaCode: 'L-82E1C851' };
let folder: string;

beforeAll(() => {
  folder = temporaryFolder();
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const open = (persist: boolean) => openLab({ persist, stateDir: folder });

test('with persist a stop keeps jobs, quotas and objects; a job that ran has failed then', async () => {
  const first = await open(true);
  await run(first, bashJob(first, 'done', 'echo x > $SAGEMAKER_BASE_DIR/model/m'));
  await create(first, bashJob(first, 'cut', 'exec sleep 600'));
  await inState(first, 'cut', 'Training');
  await first.admin.setQuota('us-east-1', P5.QuotaCode, 3);
  await first.sandbox.stop();

  const second = await open(true);
  const [done, cut] = [await describeJob(second, 'done'), await describeJob(second, 'cut')];
  const { Quota } = await second.quotas.send(new GetServiceQuotaCommand(P5));
  const model = await read(second, 'out/done/output/model.tar.gz');
  await second.sandbox.stop();

  expect(done.TrainingJobStatus).toBe('Completed');
  expect(done.CreationTime).toBeInstanceOf(Date);
  expect(cut).toMatchObject({
    TrainingJobStatus: 'Failed',
    FailureReason: expect.stringMatching(/^InternalServerError/),
  });
  expect(Quota?.Value).toBe(3);
  expect(model.length).toBeGreaterThan(0);
}, 60_000);

test('without persist a new sandbox knows nothing of an earlier one', async () => {
  const lab: Lab = await open(false);
  await expect(describeJob(lab, 'done')).rejects.toMatchObject({ name: 'ValidationException' });
  await expect(read(lab, 'out/done/output/model.tar.gz')).rejects.toMatchObject({ name: 'NoSuchKey' });
  await lab.sandbox.stop();
});
