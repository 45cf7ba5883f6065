import { GetParameterCommand, type SSMClient } from '@aws-sdk/client-ssm';
import { descriptorParameter } from '../../contracts/launcher';
import type { Descriptor } from '../../spec/descriptor';
import { loadDescriptor } from '../../spec/load';

/** The descriptor of the day for one team. Throws when the parameter is missing or no descriptor. */
export async function readDescriptor(ssm: SSMClient, environment: string, team: string): Promise<Descriptor> {
  const Name = descriptorParameter(environment, team);
  const { Parameter } = await ssm.send(new GetParameterCommand({ Name }));
  const { value, issues } = loadDescriptor(Parameter?.Value ?? '');
  if (!value) throw new Error(`SSM parameter ${Name} is no descriptor: ${issues.map((i) => i.message).join('; ')}`);
  return value;
}
