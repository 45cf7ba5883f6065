import { GetAccountSettingsCommand } from '@aws-sdk/client-lambda';
import { GetServiceQuotaCommand, paginateListServiceQuotas, type ServiceQuota } from '@aws-sdk/client-service-quotas';
import { GetCallerIdentityCommand } from '@aws-sdk/client-sts';
import {
  GENERAL_QUOTAS,
  INSTANCE_QUOTA_CODES,
  instanceQuota,
  QUOTA,
  type QuotaUsage,
} from '../../../../core/catalog/quotas';
import { firstFive, holdsIf, type Probe, probe, type ReadWorld, unknown } from '../probe';

/** Type whose quotas are read when the environment allows no type explicitly. */
const ANY_TYPE = 'ml.m5.large';
/** Concurrent executions needed for ticks of many runs and custom resources; a new account may have ten. */
const CONCURRENT_EXECUTIONS = 50;
const CLOCK_SECONDS = 60;
/** ListServiceQuotas allows ten calls per second. */
const PAGE_PAUSE_MS = 110;

const listings = new WeakMap<ReadWorld, Map<string, Promise<ServiceQuota[]>>>();

/** All quotas of a service in the Region, listed once. */
function quotasOf(world: ReadWorld, ServiceCode: string): Promise<ServiceQuota[]> {
  const known = listings.get(world) ?? new Map<string, Promise<ServiceQuota[]>>();
  listings.set(world, known);
  const listing = known.get(ServiceCode) ?? listQuotas(world, ServiceCode);
  known.set(ServiceCode, listing);
  return listing;
}

async function listQuotas(world: ReadWorld, ServiceCode: string): Promise<ServiceQuota[]> {
  const found: ServiceQuota[] = [];
  for await (const page of paginateListServiceQuotas({ client: world.quotas, pageSize: 100 }, { ServiceCode })) {
    found.push(...(page.Quotas ?? []));
    await world.sleep(PAGE_PAUSE_MS);
  }
  return found;
}

const CATALOG_QUOTAS = [
  ...Object.entries(INSTANCE_QUOTA_CODES).flatMap(([type, codes]) =>
    (Object.keys(codes) as QuotaUsage[]).map((usage) => instanceQuota(type, usage)),
  ),
  ...Object.entries(GENERAL_QUOTAS).map(([code, { name }]) => ({ code, name })),
].flatMap(({ code, name }) => (code ? [{ code, name }] : []));

/** Compares a rate from Service Quotas with the rate that Slipway uses. */
const rate = (assumption: string, service: string, operation: string, perSecond: number): Probe<ReadWorld> =>
  probe(assumption, `${operation}: at least ${perSecond} per second`, async (world) => {
    const quotas = await quotasOf(world, service);
    const words = new RegExp(`\\b${operation}\\b`);
    const found = quotas.find(
      ({ QuotaName = '', Value }) =>
        Value !== undefined && words.test(QuotaName) && /rate|TPS|per second/i.test(QuotaName),
    );
    if (!found) return unknown(`none of the ${quotas.length} quotas of ${service} is this rate`);
    return holdsIf((found.Value ?? 0) >= perSecond, `"${found.QuotaName}" is ${found.Value}`);
  });

export const QUOTA_PROBES: readonly Probe<ReadWorld>[] = [
  probe(
    'quota-codes',
    `${CATALOG_QUOTAS.length} codes with the names in the catalog, for those that the Region has`,
    async (world) => {
      const names = new Map((await quotasOf(world, 'sagemaker')).map((q) => [q.QuotaCode, q.QuotaName]));
      const known = CATALOG_QUOTAS.filter(({ code }) => names.has(code));
      const wrong = known.filter(({ code, name }) => names.get(code) !== name);
      if (known.length === 0) return unknown(`none of them is among the ${names.size} quotas of the Region`);
      const list = firstFive(wrong.map(({ code, name }) => `${code} is "${names.get(code)}", not "${name}"`));
      return holdsIf(wrong.length === 0, `${known.length} found, ${wrong.length} differ${list && `: ${list}`}`);
    },
  ),
  probe('quota-applied', 'an applied value of each quota', async (world) => {
    const types = world.descriptor?.guardrails?.allowedInstanceTypes ?? [ANY_TYPE];
    const codes = [...types.flatMap((type) => instanceQuota(type, 'training').code ?? []), ...Object.values(QUOTA)];
    const missing: string[] = [];
    for (const QuotaCode of codes) {
      const answer = await world.quotas
        .send(new GetServiceQuotaCommand({ ServiceCode: 'sagemaker', QuotaCode }))
        .catch((error: Error) => error);
      if (answer instanceof Error) missing.push(`${QuotaCode}: ${answer.name}`);
      else if (answer.Quota?.Value === undefined) missing.push(`${QuotaCode}: no value`);
    }
    const seen = `${codes.length - missing.length} of ${codes.length} have a value`;
    return holdsIf(missing.length === 0, [seen, ...(missing.length > 0 ? [firstFive(missing)] : [])].join('; '));
  }),
  rate('create-rate', 'sagemaker', 'CreateTrainingJob', 1),
  rate('list-rate', 'sagemaker', 'ListTrainingJobs', 2),
  rate('parameter-rate', 'ssm', 'GetParameter', 40),
  probe('function-concurrency', `at least ${CONCURRENT_EXECUTIONS} concurrent executions`, async (world) => {
    const { AccountLimit } = await world.lambda.send(new GetAccountSettingsCommand({}));
    const free = AccountLimit?.UnreservedConcurrentExecutions;
    return free === undefined ? unknown('Lambda returned no limit') : holdsIf(free >= CONCURRENT_EXECUTIONS, `${free}`);
  }),
  probe('clock', `at most ${CLOCK_SECONDS} seconds of clock skew between this machine and AWS`, async (world) => {
    let date: string | undefined;
    const command = new GetCallerIdentityCommand({});
    command.middlewareStack.add(
      (next) => async (args) => {
        const result = await next(args);
        date = (result.response as { headers?: Record<string, string> }).headers?.date;
        return result;
      },
      { step: 'deserialize', name: 'readDate' },
    );
    await world.sts.send(command);
    if (!date) return unknown('the response had no Date header');
    const seconds = Math.round(Math.abs(Date.parse(date) - world.now()) / 1000);
    return holdsIf(seconds <= CLOCK_SECONDS, `${seconds} s`);
  }),
];
