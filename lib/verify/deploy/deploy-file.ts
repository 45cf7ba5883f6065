/** Name of the small environment that level `deploy` deploys and destroys. */
export const VERIFY_ENVIRONMENT = 'verify';

/** More than any account has: the quota check must refuse it. */
const IMPOSSIBLE_COUNT = 1_000_000;
const TYPE = 'ml.m5.large';

/** Where the level `deploy` deploys, and the image that its environment names. */
export interface DeployPlace {
  readonly region: string;
  readonly account: string;
  readonly partition: string;
  /** An image that exists, so that nothing is built. */
  readonly image: string;
}

/** How the files of the sequence differ; each field is one stage's change. */
export interface DeployChange {
  readonly impossibleQuota?: boolean;
  /** A principal that does not exist: IAM refuses the trust policy late in the deploy. */
  readonly unknownPrincipal?: boolean;
  /** Guardrails, teams, budget-free sections as they are changed on day 2. */
  readonly dayTwo?: boolean;
}

/** The environment file of one stage, as YAML that is also JSON. */
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
