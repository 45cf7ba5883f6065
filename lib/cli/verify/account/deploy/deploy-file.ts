/** Name of the small environment that level `deploy` deploys and destroys. */
export const VERIFY_ENVIRONMENT = 'verify';

/** More instances than any account has: the quota check must reject it. */
const IMPOSSIBLE_COUNT = 1_000_000;
const TYPE = 'ml.m5.large';

/** Where level `deploy` deploys, and the image of its environment. */
export interface DeployPlace {
  readonly region: string;
  readonly account: string;
  readonly partition: string;
  /** An existing image, so that no image is built. */
  readonly image: string;
}

/** Changes to the environment file; each field is used by one stage. */
export interface DeployChange {
  readonly impossibleQuota?: boolean;
  /** A principal that does not exist: IAM rejects the trust policy late in the deployment. */
  readonly unknownPrincipal?: boolean;
  /** Changes to guardrails, teams and other sections after the first deployment. */
  readonly dayTwo?: boolean;
}

/** The environment file of one stage, as JSON, which is also valid YAML. */
export function deployFile({ region, account, partition, image }: DeployPlace, change: DeployChange = {}): string {
  const principal = (name: string) => `arn:${partition}:iam::${account}:${name}`;
  const count = change.impossibleQuota ? IMPOSSIBLE_COUNT : 1;
  const first = change.unknownPrincipal ? principal('role/slipway-verify-no-such-role') : principal('root');
  const file = {
    schema: 1,
    name: VERIFY_ENVIRONMENT,
    account,
    regions: { [region]: {} },
    network: { mode: 'vpc-locked' },
    storage: { retain: false },
    image: { build: false, uri: image },
    quotas: { enforce: 'fail', require: [{ instanceType: TYPE, count }] },
    guardrails: { allowedInstanceTypes: [TYPE], maxInstancesPerRun: change.dayTwo ? 2 : 1 },
    teams: {
      one: { principals: [first] },
      ...(change.dayTwo && { two: { principals: [principal('root')], share: 2 } }),
    },
  };
  return `${JSON.stringify(file, null, 2)}\n`;
}
