import { readFileSync } from 'node:fs';
import path from 'node:path';
import { CloudFormationClient, paginateListStackResources } from '@aws-sdk/client-cloudformation';
import { EC2Client } from '@aws-sdk/client-ec2';
import { ECRClient } from '@aws-sdk/client-ecr';
import { IAMClient } from '@aws-sdk/client-iam';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { PricingClient } from '@aws-sdk/client-pricing';
import { S3Client } from '@aws-sdk/client-s3';
import { SageMakerClient } from '@aws-sdk/client-sagemaker';
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { STSClient } from '@aws-sdk/client-sts';
import type { Descriptor } from '../../../core/config/descriptor';
import { packageRoot } from '../../../shared/local/own-package';
import { awsClient } from '../../aws-client';

/** Whether an assumption holds; `unknown` when the probe could not determine it. */
type Verdict = 'holds' | 'differs' | 'unknown';

interface Finding {
  readonly verdict: Verdict;
  /** The expected result, in terms of the measurement. */
  readonly expected: string;
  /** The actual result, without secrets and account ids. */
  readonly seen: string;
}

/** What a probe found; `expected` only where it is more exact than the expectation of the probe. */
type Answer = Omit<Finding, 'expected'> & Partial<Finding>;

/** Tests one assumption. A probe never throws for a response of the account: every response is a finding. */
export interface Probe<World> {
  readonly assumption: string;
  readonly expected: string;
  run(world: World): Answer | Promise<Answer>;
}

/** A probe by the id of its assumption, its expectation and its test. */
export const probe = <World>(assumption: string, expected: string, run: Probe<World>['run']): Probe<World> => ({
  assumption,
  expected,
  run,
});

/** One line of the record and of the `--json` output. */
export interface ProbeResult extends Finding {
  /** `<level>/<assumption>`. */
  readonly id: string;
  /** Anchor in docs/assumptions.md. */
  readonly assumption: string;
  readonly seconds: number;
}

export const holdsIf = (holds: boolean, seen: string, expected?: string): Answer => ({
  verdict: holds ? 'holds' : 'differs',
  seen,
  expected,
});

/** The answer of a probe without a result, with the reason. */
export const unknown = (seen: string, expected?: string): Answer => ({ verdict: 'unknown', seen, expected });

/** Holds when there are no problems; `otherwise` is then what was seen. */
export const noneOf = (problems: readonly string[], otherwise: string): Answer =>
  holdsIf(problems.length === 0, firstFive(problems) || otherwise);

/** At most five items of a list, and the number of further items. */
export function firstFive(items: readonly string[], separator = '; '): string {
  const rest = items.length - 5;
  return [...items.slice(0, 5), ...(rest > 0 ? [`and ${rest} more`] : [])].join(separator);
}

const DENIED = /AccessDenied|UnauthorizedOperation|AuthorizationError|not authorized/i;

/** Runs one probe; an error becomes an unknown verdict with the reason. */
export async function runProbe<World>(
  level: Level,
  probe: Probe<World>,
  world: () => Promise<World> | World,
  now: () => number,
): Promise<ProbeResult> {
  const assumption = requireAssumption(probe.assumption);
  const started = now();
  const answer = await Promise.resolve()
    .then(world)
    .then((made) => probe.run(made))
    .catch((error: Error): Finding => {
      const text = `${error.name}: ${error.message}`;
      const seen = DENIED.test(text) ? `the caller lacks a permission: ${text}` : text;
      return { verdict: 'unknown', expected: assumption.claim, seen };
    });
  const { verdict, seen, expected = probe.expected } = answer;
  const seconds = Math.round((now() - started) / 100) / 10;
  return { id: `${level}/${assumption.id}`, assumption: assumption.id, verdict, expected, seen, seconds };
}

/**
 * The Price List API is only available in three Regions:
 * https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-price-list-query-api.html
 */
const PRICE_LIST_REGION = 'us-east-1';

/** The caller's account, one Region, and the environment if it is deployed there. */
interface ReadPlace {
  readonly region: string;
  /** Name of the environment; its stack is `Slipway-<name>-<region>`. */
  readonly environment: string;
  /** Descriptor of the given team, or of any team; undefined when the environment is not deployed in the Region. */
  readonly descriptor?: Descriptor;
  now(): number;
  sleep(milliseconds: number): Promise<void>;
}

export type ReadWorld = ReturnType<typeof readWorld>;

/** Data sources for the probes of level `read`. */
export function readWorld(place: ReadPlace) {
  const settings = { region: place.region, maxAttempts: 6, retryMode: 'adaptive' };
  const cloudformation = awsClient(CloudFormationClient, settings);
  let resources: Promise<Map<string, string[]>> | undefined;
  const readResources = () => stackResources(cloudformation, `Slipway-${place.environment}-${place.region}`);
  return {
    ...place,
    cloudformation,
    sts: awsClient(STSClient, settings),
    iam: awsClient(IAMClient, settings),
    quotas: awsClient(ServiceQuotasClient, settings),
    sagemaker: awsClient(SageMakerClient, settings),
    ec2: awsClient(EC2Client, settings),
    ecr: awsClient(ECRClient, settings),
    s3: awsClient(S3Client, {
      ...settings,
      forcePathStyle: Boolean(process.env.AWS_ENDPOINT_URL_S3 ?? process.env.AWS_ENDPOINT_URL),
    }),
    lambda: awsClient(LambdaClient, settings),
    pricing: awsClient(PricingClient, { ...settings, region: PRICE_LIST_REGION }),
    /** Physical ids of the stack's resources of a type, read once. Empty when there is no stack. */
    resourcesOf: async (type: string): Promise<string[]> => {
      resources ??= readResources();
      return (await resources).get(type) ?? [];
    },
  };
}

async function stackResources(client: CloudFormationClient, StackName: string): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>();
  try {
    for await (const page of paginateListStackResources({ client }, { StackName })) {
      for (const { ResourceType = '', PhysicalResourceId } of page.StackResourceSummaries ?? [])
        if (PhysicalResourceId) found.set(ResourceType, [...(found.get(ResourceType) ?? []), PhysicalResourceId]);
    }
  } catch (error) {
    if (!/does not exist/.test((error as Error).message)) throw error;
  }
  return found;
}

/** Levels of `slipway verify`; each level includes the previous ones. */
export const LEVELS = ['read', 'deploy', 'train', 'efa'] as const;
export type Level = (typeof LEVELS)[number];

/** A row of docs/assumptions.md. */
interface Assumption {
  /** Anchor in the page; never changes once it is published. */
  readonly id: string;
  /** The assumption as one sentence. */
  readonly claim: string;
  /** Consequences for users if it does not hold. */
  readonly ifWrong: string;
  /** Level whose probe tests it; absent = no probe can test it, and it remains open until it is observed. */
  readonly probe?: Level;
}

const ANCHOR = /^\| <a id="([\w-]+)"><\/a>/;
let read: ReadonlyMap<string, Assumption> | undefined;

/** The assumptions about AWS by id, in the order of docs/assumptions.md, which is read at the first call. */
export function assumptions(): ReadonlyMap<string, Assumption> {
  read ??= new Map(
    readFileSync(path.join(packageRoot(), 'docs/assumptions.md'), 'utf8')
      .split('\n')
      .flatMap((line) => {
        const id = ANCHOR.exec(line)?.[1];
        return id === undefined ? [] : [[id, assumptionOf(id, line)] as const];
      }),
  );
  return read;
}

/** A row has seven cells: id, claim, basis, used by, if it is wrong, embedded AWS, probe. */
function assumptionOf(id: string, row: string): Assumption {
  const cells = row.slice(2, -2).split(' | ');
  return { id, claim: cells[1] ?? '', ifWrong: cells[4] ?? '', probe: LEVELS.find((level) => level === cells[6]) };
}

/** @throws Error when there is no assumption with this id, which is an error in a probe */
export function requireAssumption(id: string): Assumption {
  const found = assumptions().get(id);
  if (!found) throw new Error(`no assumption ${id}; add it to docs/assumptions.md`);
  return found;
}
