import type { App } from 'aws-cdk-lib';
import { plainText } from '../core/config/formats/plain-text';
import { isDeployed } from './embedded-aws';
import { EnvironmentStack } from './environment-stack';
import { type EnvironmentToMake, readEnvironments } from './read-environments';

/** Location of the environment files for `slipwayApp`. */
export interface SlipwayAppProps {
  /** Folder whose environment files are all deployed; takes precedence over `file`. @default - the context value `environments` */
  readonly folder?: string;
  /** One environment file. @default - the context value `environment`; without any, the files of the folder `environments` */
  readonly file?: string;
}

/**
 * Adds one stack per Region of each environment file to an app, named `Slipway-<name>-<region>`. Problems in the files are printed to
 * stderr.
 *
 * ```ts
 * slipwayApp(new App());
 * ```
 * @throws when a file has an error; nothing is added in that case
 */
export async function slipwayApp(app: App, props: SlipwayAppProps = {}): Promise<EnvironmentStack[]> {
  const environments = await environmentsOf(app, props);
  return environments.map((environment) => stackOf(app, environment));
}

/** The environments of the files. Prints the problems of the files, and throws when one of them is an error. */
export async function environmentsOf(app: App, props: SlipwayAppProps): Promise<EnvironmentToMake[]> {
  const { environments, problems } = await readEnvironments({
    folder: props.folder ?? app.node.tryGetContext('environments'),
    file: props.file ?? app.node.tryGetContext('environment'),
  });
  for (const problem of problems) console.error(plainText(problem.text));
  const errors = problems.filter(({ level }) => level === 'error').length;
  if (errors > 0)
    throw new Error(`environment files: must have no errors, got ${errors}; correct what is printed above`);
  return environments;
}

function stackOf(app: App, { spec, ...rest }: EnvironmentToMake): EnvironmentStack {
  const account = spec.account ?? process.env.CDK_DEFAULT_ACCOUNT;
  const accounts = Object.values(spec.accounts ?? {});
  if (accounts.length > 0 && account !== undefined && !accounts.includes(account) && isDeployed(app, 'accounts'))
    throw new Error(
      `environment ${spec.name}: accounts: must contain the account of the credentials (${accounts.join(', ')}), got ${account}; sign in to one of them`,
    );
  const env = { account, region: spec.region };
  return new EnvironmentStack(app, `Slipway-${spec.name}-${spec.region}`, { spec, env, ...rest });
}
