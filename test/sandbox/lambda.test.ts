import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { CreateRoleCommand, IAMClient, PutRolePolicyCommand } from '@aws-sdk/client-iam';
import { CreateFunctionCommand, InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Sandbox, startSandbox } from '../../lib/sandbox/testing';
import { clientOptions, temporaryFolder, tlsOptions, VENV } from './support';

const HANDLER = `
import { SageMakerClient, ListTrainingJobsCommand } from '@aws-sdk/client-sagemaker';
import { ServiceQuotasClient, GetServiceQuotaCommand } from '@aws-sdk/client-service-quotas';
const answer = (call) => call.then((value) => value, (error) => ({ refused: error.name, message: error.message }));
export const handler = async () => ({
  jobs: await answer(new SageMakerClient({}).send(new ListTrainingJobsCommand({}))),
  quota: await answer(new ServiceQuotasClient({}).send(new GetServiceQuotaCommand({ ServiceCode: 'sagemaker', QuotaCode: 'L-00C91CB5' }))),
});`;

let folder: string;
let sandbox: Sandbox;

beforeAll(async () => {
  folder = temporaryFolder();
  sandbox = await startSandbox({ stateDir: folder, venvDir: VENV, auth: true });
}, 120_000);

afterAll(async () => {
  await sandbox.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function bundle(): Promise<Uint8Array> {
  const outfile = path.join(folder, 'index.mjs');
  const stdin = { contents: HANDLER, resolveDir: __dirname };
  const banner = { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" };
  await build({
    stdin,
    outfile,
    banner,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    logLevel: 'error',
  });
  execFileSync('python3', ['-m', 'zipfile', '-c', 'code.zip', 'index.mjs'], { cwd: folder });
  return readFileSync(path.join(folder, 'code.zip'));
}

test('a Lambda function reaches our services over TLS, with the permissions of its own role', async () => {
  const options = { ...clientOptions(sandbox, sandbox.endpoints.aws), ...tlsOptions(sandbox) };
  const [iam, lambda] = [new IAMClient(options), new LambdaClient(options)];
  const trust = {
    Statement: [{ Effect: 'Allow', Principal: { Service: 'lambda.amazonaws.com' }, Action: 'sts:AssumeRole' }],
  };
  const document = { Statement: [{ Effect: 'Allow', Action: 'sagemaker:ListTrainingJobs', Resource: '*' }] };
  const role = { RoleName: 'reader', AssumeRolePolicyDocument: JSON.stringify(trust) };
  const { Role } = await iam.send(new CreateRoleCommand(role));
  await iam.send(
    new PutRolePolicyCommand({ RoleName: 'reader', PolicyName: 'own', PolicyDocument: JSON.stringify(document) }),
  );
  const ZipFile = await bundle();
  await lambda.send(
    new CreateFunctionCommand({
      FunctionName: 'reader',
      Role: Role?.Arn,
      Runtime: 'nodejs24.x',
      Handler: 'index.handler',
      Code: { ZipFile },
      Timeout: 20,
    }),
  );

  const { Payload } = await lambda.send(new InvokeCommand({ FunctionName: 'reader' }));

  expect(JSON.parse(Buffer.from(Payload ?? []).toString())).toEqual({
    jobs: expect.objectContaining({ TrainingJobSummaries: [] }),
    quota: {
      refused: 'AccessDeniedException',
      message: expect.stringMatching(
        /^User: arn:aws:sts::000000000000:assumed-role\/reader\/\S+ is not authorized to perform: servicequotas:GetServiceQuota/,
      ),
    },
  });
}, 60_000);
