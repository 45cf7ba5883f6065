import {
  CloudWatchLogsClient,
  CreateLogGroupCommand,
  DescribeLogGroupsCommand,
  PutRetentionPolicyCommand,
} from '@aws-sdk/client-cloudwatch-logs';
import { logRetentionSchema } from '../../core/contracts/custom-resources';
import { answerOrUndefined } from '../../shared/aws/answers';
import { clientSettings } from '../shared/clients';
import { acceptingRollback, entryPoint, whileItExists } from '../shared/custom-resource';

type RetentionDeps = { logs: CloudWatchLogsClient };

/**
 * Sets a retention on SageMaker's own log groups if none is set: all jobs of the Region share these groups, so an existing value was chosen
 * by someone and is kept. Delete changes nothing.
 */
export const onEvent = whileItExists(logRetentionSchema, async (deps: RetentionDeps, properties) => {
  const { logGroupNames, retentionDays } = properties;
  for (const name of logGroupNames) await setWhenUnset(deps, name, retentionDays);
  return { PhysicalResourceId: 'shared-log-retention' };
});

async function setWhenUnset({ logs }: RetentionDeps, logGroupName: string, retentionInDays: number): Promise<void> {
  const { logGroups } = await logs.send(new DescribeLogGroupsCommand({ logGroupNamePrefix: logGroupName }));
  const group = logGroups?.find((g) => g.logGroupName === logGroupName);
  if (group?.retentionInDays !== undefined) return;
  // SageMaker or another stack may create it first.
  if (!group)
    await answerOrUndefined(logs.send(new CreateLogGroupCommand({ logGroupName })), 'ResourceAlreadyExistsException');
  await logs.send(new PutRetentionPolicyCommand({ logGroupName, retentionInDays }));
}

const deps = () => ({ logs: new CloudWatchLogsClient(clientSettings) });

export const handler = entryPoint(deps, onEvent, acceptingRollback);
