// What IAM was asked on the embedded AWS, held against the statements of the roles that the template has.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { CloudFormationClient, ListStackResourcesCommand } from '@aws-sdk/client-cloudformation';
import { expect, test } from 'vitest';
import type { Deployed } from '../support/deployed';
import { ROLE, roleOf } from './credentials';
import { allowingSids, decisionsByRole, denied, type RoleTemplate } from './decision-file';

/** Statements that none of these calls needs, and who needs them. test/laws/calls has the call or the page for each. */
const NOT_PLAYED: Readonly<Record<string, string>> = {
  WriteOwnLogs: 'Lambda writes the log of a function',
  KeepFailedEvents: 'Lambda sends events that failed to the dead-letter queue',
  EncryptFailedEvents: 'Lambda encrypts what it sends to the dead-letter queue; MiniStack asks for no key',
  ReadHeartbeats: 'status of a live run in the hands of an auditor',
  ReadDescriptors: 'status of a live run in the hands of an auditor',
  PollRunQueue: 'Lambda polls the queue of a function',
  ReadEncrypted: 'S3, DynamoDB and Lambda use keys in the name of the caller; MiniStack asks for no key',
  UseTeamKeys: 'S3 uses the key in the name of the caller; MiniStack asks for no key',
  ReadWithSharedKey: 'S3 uses the key in the name of the caller; MiniStack asks for no key',
  UseDataKey: 'S3 and DynamoDB use the key in the name of the caller; MiniStack asks for no key',
  UseOperationsKey: 'SQS uses the key in the name of the caller; MiniStack asks for no key',
  UseKeyThroughS3: 'S3 uses the key in the name of the caller; MiniStack asks for no key',
  LogInToRegistries: 'SageMaker pulls the image',
  PullImages: 'SageMaker pulls the image',
  WriteMetrics: 'SageMaker and scripts put metrics; the trainer of this run puts none',
  WriteOwnOutputs: 'SageMaker uploads outputs; these jobs have none',
  EncryptVolumes: 'SageMaker encrypts volumes',
  SeeKey: 'SageMaker encrypts volumes',
  SeeNetwork: 'SageMaker puts interfaces into the VPC',
  MakeInterfaces: 'SageMaker puts interfaces into the VPC',
  HandOverInterfaces: 'SageMaker puts interfaces into the VPC',
  TellWhatIsMissing: 'a file that is not there',
  SeeTrainingPlans: 'preflight, launch and plan of a run in a training plan',
  UseTrainingPlans: 'a run in a training plan (test/sandbox/rules-of-permissions.test.ts)',
  TagUncommittedCheckpoints: 'a save that an ended attempt left unfinished',
  SeeImages: 'an image of the repository of the environment',
};

/** Registers the tests of a deployed environment whose decisions are in `file`: after all others. */
export function decisionsOfRoles(environment: () => Deployed, file: string): void {
  const template = (): RoleTemplate =>
    JSON.parse(readFileSync(path.join(environment().folder, 'cdk.out/Slipway-e2e-us-west-2.template.json'), 'utf8'));

  /** Name of a role by its logical id. */
  async function roleNames(): Promise<Map<string, string>> {
    const list = new ListStackResourcesCommand({ StackName: 'Slipway-e2e-us-west-2' });
    const { StackResourceSummaries: all = [] } = await environment().client(CloudFormationClient).send(list);
    const roles = all.filter(({ ResourceType }) => ResourceType === 'AWS::IAM::Role');
    return new Map(roles.map(({ LogicalResourceId: id = '', PhysicalResourceId: name = '' }) => [id, name]));
  }

  test('every call of ours was allowed, but for those that the tests above are about', async () => {
    const reconcile = await roleOf(environment(), 'slipway-e2e-reconcile');
    // The attacks of team `other` say themselves that each of their calls is denied.
    const ours = denied(decisionsByRole(file)).filter((line) => !line.startsWith(`${ROLE}-other-`));
    expect(ours).toEqual(
      [
        `${reconcile} sagemaker:CreateTrainingJob`,
        `${ROLE}-auditor lambda:InvokeFunction`,
        `${ROLE}-default-researcher lambda:InvokeFunction`,
        `${ROLE}-default-researcher sagemaker:AddTags`,
        `${ROLE}-default-researcher sagemaker:CreateModelPackage`,
        `${ROLE}-default-researcher sagemaker:CreateModelPackageGroup`,
        `${ROLE}-default-researcher sagemaker:StopTrainingJob`,
        `${ROLE}-default-researcher sagemaker:UpdateTrainingJob`,
      ].sort(),
    );
  });

  test('each statement of launcher, jobs and researcher was needed by a call, or says here who needs it', async () => {
    const [names, decisions] = [await roleNames(), decisionsByRole(file)];
    const prefixes = [
      'AuditFunctionRole',
      'LauncherControlRole',
      'LauncherReconcileRole',
      'Rolesdefault',
      'Accessdefaultresearcher',
    ];
    const ids = [...names.keys()].filter((id) => prefixes.some((prefix) => id.startsWith(prefix)));
    expect(ids.length).toBe(6);
    const unneeded = ids.flatMap((id) => {
      const needed = (decisions.get(names.get(id) ?? '') ?? []).map(({ statement }) => statement);
      return allowingSids(template(), id).filter((sid) => !needed.includes(sid));
    });
    expect([...new Set(unneeded)].sort()).toEqual(Object.keys(NOT_PLAYED).sort());
  });
}
