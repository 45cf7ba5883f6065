import { mockClient as mock } from 'aws-sdk-client-mock';

const mocks: { restore(): void }[] = [];

/** A client class of the AWS SDK whose `send` is replaced, for all of its instances, until the tests of the file have ended. */
export const mockClient: typeof mock = (client) => {
  const made = mock(client);
  mocks.push(made);
  return made;
};

/** Test files share a process: the next one may want the real class. */
export function restoreClients(): void {
  for (const made of mocks.splice(0)) made.restore();
}
