import { DescribeTrainingPlanCommand, SageMakerClient } from '@aws-sdk/client-sagemaker';
import { beforeEach, expect, test } from 'vitest';
import { checkTrainingPlans } from '../../../lib/cli/environment/checks/account-checks';
import { mockClient } from '../../support/mocked-clients';
import { BASE, DESCRIPTOR, runOf } from '../../support/runs';

const ARN = 'arn:aws:sagemaker:us-west-2:111122223333:training-plan/mine';
const sagemaker = mockClient(SageMakerClient);
beforeEach(() => sagemaker.reset());
const run = runOf({ ...BASE, compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 4, trainingPlanArn: ARN } });

test('a run without a training plan asks nothing', async () => {
  expect(await checkTrainingPlans(runOf(BASE), DESCRIPTOR)).toEqual({ checks: [], issues: [] });
  expect(sagemaker.calls()).toEqual([]);
});

test('the plan is read in the words of the API', async () => {
  sagemaker.on(DescribeTrainingPlanCommand, { TrainingPlanName: 'mine' }).resolves({
    TrainingPlanArn: ARN,
    Status: 'Active',
    TargetResources: ['training-job'],
    TotalInstanceCount: 8,
    AvailableInstanceCount: 2,
    ReservedCapacitySummaries: [
      { ReservedCapacityArn: 'r', InstanceType: 'ml.p5.48xlarge', TotalInstanceCount: 8, Status: 'Active' },
    ],
  });
  const { checks, issues } = await checkTrainingPlans(run, DESCRIPTOR);
  expect(checks).toEqual([{ name: 'training plan', verdict: 'ok', detail: 'Active, 2 of 8 instances free' }]);
  expect(issues).toMatchObject([{ level: 'warning', path: 'compute.trainingPlanArn' }]);
});

test('fails: a plan that does not exist, and one that the caller may not see', async () => {
  const failing = (name: string) => Object.assign(new Error(name), { name });
  sagemaker
    .on(DescribeTrainingPlanCommand)
    .rejectsOnce(failing('ResourceNotFound'))
    .rejects(failing('AccessDeniedException'));
  expect((await checkTrainingPlans(run, DESCRIPTOR)).checks).toMatchObject([{ verdict: 'failed' }]);
  expect((await checkTrainingPlans(run, DESCRIPTOR)).checks).toMatchObject([
    { verdict: 'unknown', missingPermission: `sagemaker:DescribeTrainingPlan on ${ARN}` },
  ]);
});

test('hours are those of the first type: of the plan of an alternative nothing is said', async () => {
  sagemaker.on(DescribeTrainingPlanCommand).resolves({
    Status: 'Active',
    TargetResources: ['training-job'],
    TotalInstanceCount: 8,
    AvailableInstanceCount: 8,
    EndTime: new Date(),
    ReservedCapacitySummaries: ['ml.p5.48xlarge', 'ml.p5e.48xlarge'].map((InstanceType) => ({
      ReservedCapacityArn: 'r',
      InstanceType: InstanceType as 'ml.p5.48xlarge',
      TotalInstanceCount: 8,
      Status: 'Active',
    })),
  });
  const alternatives = [{ instanceType: 'ml.p5e.48xlarge', trainingPlanArn: ARN }];
  const ofCompute = (compute: object) =>
    runOf({
      ...BASE,
      model: { preset: 'llama2-7b' },
      training: { sequenceLength: 4096, globalBatchSize: 256, steps: 10_000 },
      compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 4, ...compute },
    });
  const own = ofCompute({ trainingPlanArn: ARN });
  const other = ofCompute({ capacity: 'training-plan', alternatives });
  expect((await checkTrainingPlans(own, DESCRIPTOR)).issues.map(({ message }) => message)).toEqual([
    expect.stringContaining('must last for the'),
  ]);
  expect((await checkTrainingPlans(other, DESCRIPTOR)).issues).toEqual([]);
});
