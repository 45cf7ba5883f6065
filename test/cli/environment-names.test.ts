import { GetParameterCommand, ParameterNotFound, SSMClient } from '@aws-sdk/client-ssm';
import { beforeEach, expect, test, vi } from 'vitest';
import { findDescriptor, readDescriptors } from '../../lib/cli/environment/environment';
import { mockClient } from '../support/mocked-clients';
import { DESCRIPTOR } from '../support/runs';

const ssm = mockClient(SSMClient);
const denied = Object.assign(new Error('not authorized to perform: ssm:GetParameter'), {
  name: 'AccessDeniedException',
  $metadata: { httpStatusCode: 400 },
});
const missing = new ParameterNotFound({ message: 'not there', $metadata: {} });
const find = (environment: string) => findDescriptor({ environment, region: 'us-west-2' });

/** An environment with these teams, of which the caller may read some. */
function deployed(teams: readonly string[] | undefined, readable: readonly string[]): void {
  ssm.reset();
  ssm.on(GetParameterCommand).callsFake(({ Name }: { Name: string }) => {
    if (Name === '/slipway/environments/research') {
      if (!teams) throw missing;
      return { Parameter: { Value: teams.join(',') } };
    }
    const team = Name.slice('/slipway/environments/research/'.length);
    if (!readable.includes(team)) throw denied;
    return { Parameter: { Value: JSON.stringify({ ...DESCRIPTOR, team }) } };
  });
}
beforeEach(() => deployed(['nlp', 'speech'], ['nlp']));

test('a researcher of one team need not name it', async () => {
  expect((await find('research')).team).toBe('nlp');
});

test('fails: of several own teams one must be named', async () => {
  deployed(['nlp', 'speech'], ['nlp', 'speech']);
  await expect(find('research')).rejects.toThrow(
    '--environment: must contain one team, got research; use research/nlp or research/speech',
  );
});

test('fails: a team that does not exist is answered with those that do, though reading it is denied', async () => {
  await expect(find('research/vision')).rejects.toThrow(
    '--environment: must name a team of environment research, got vision; use research/nlp or research/speech',
  );
});

test('fails: a team of somebody else is no mistake of spelling', async () => {
  await expect(find('research/speech')).rejects.toThrow(
    'reading environment research/speech in us-west-2: must be permitted',
  );
});

test('fails: no team that the caller belongs to', async () => {
  deployed(['nlp', 'speech'], []);
  await expect(find('research')).rejects.toThrow(
    'got research with nlp or speech, none of which you are allowed to read',
  );
});

test('fails: an environment that does not exist', async () => {
  deployed(undefined, []);
  await expect(find('research')).rejects.toThrow('must be an environment of us-west-2, got research');
});

test('fails: where the list of teams is denied, the team must be named', async () => {
  ssm.on(GetParameterCommand).rejects(denied);
  await expect(find('research')).rejects.toThrow(
    "--environment: must also contain your team, got research, whose teams you are not allowed to list; write research/TEAM with your team's name",
  );
});

test('fails: where that is denied to a verb about all teams, its environment is named as it was written', async () => {
  ssm.on(GetParameterCommand).rejects(denied);
  await expect(readDescriptors('research', 'us-west-2')).rejects.toThrow(
    'research: must be an environment whose teams you are allowed to list, got no permission; ask the platform team for it',
  );
});

test('fails: an environment is corrected where it was written: option, run file or variable', async () => {
  const region = 'us-west-2';
  const message = ': must name a team of environment research, got vision; use research/nlp or research/speech';
  vi.stubEnv('SLIPWAY_ENVIRONMENT', 'research/vision');
  await expect(findDescriptor({ region })).rejects.toThrow(`SLIPWAY_ENVIRONMENT${message}`);
  await expect(findDescriptor({ region }, 'research/vision')).rejects.toThrow(new RegExp(`^environment${message}`));
  await expect(findDescriptor({ region, environment: 'research/vision' })).rejects.toThrow(`--environment${message}`);
  vi.unstubAllEnvs();
});
