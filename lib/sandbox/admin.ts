import { z } from 'zod';
import { anyFaultSchema } from './faults/fault';
import type { FaultPlan } from './faults/fault-plan';
import type { Hook } from './ministack/hook';
import type { QuotaStore } from './quotas/quota-store';
import type { IncreaseRequests } from './quotas/service-quotas';
import type { Answer, Handler } from './wire/http-server';

export const ADMIN_PREFIX = '/_slipway/';

interface AdminDeps {
  /** Faults of our services and jobs; the hook has those of MiniStack. */
  faults: FaultPlan;
  hook: Hook;
  quotas: QuotaStore;
  increases: IncreaseRequests;
  /** Account of calls that name none. */
  accountId: string;
}

/** The result is the body of the answer; false: nothing has this name. */
type Act = (parameters: Record<string, string>, body: unknown) => unknown;

const quotaBody = z.strictObject({ value: z.number().nonnegative().nullable(), name: z.string().optional() });
const decisionBody = z.strictObject({
  region: z.string(),
  code: z.string().optional(),
  decision: z.enum(['APPROVED', 'DENIED']).default('APPROVED'),
});

function routesOf({ faults, hook, quotas, increases, accountId }: AdminDeps) {
  const addFault: Act = (_, body) => {
    const fault = anyFaultSchema.parse(body, { reportInput: true });
    return fault.kind === 'aws-error' ? hook.addFault({ id: faults.nextId(), fault }) : faults.add(fault);
  };
  const clearFaults: Act = async () => {
    faults.clear();
    await hook.removeFaults();
  };
  const decide: Act = ({ account = accountId }, body) => {
    const { region, code, decision } = decisionBody.parse(body, { reportInput: true });
    return { requests: increases.decide(account, region, decision, code) };
  };
  const setQuota: Act = ({ account = accountId, region = '', code = '' }, body) => {
    const { value, name } = quotaBody.parse(body, { reportInput: true });
    return value === null ? quotas.remove(account, region, code) : quotas.set(account, region, { code, value, name });
  };
  const routes: [method: string, path: RegExp, act: Act][] = [
    ['GET', /^faults$/, async () => ({ faults: [...faults.list(), ...(await hook.listFaults())] })],
    ['POST', /^faults$/, addFault],
    ['DELETE', /^faults$/, clearFaults],
    ['DELETE', /^faults\/(?<id>[^/]+)$/, async ({ id = '' }) => faults.remove(id) || (await hook.removeFaults(id)) > 0],
    ['GET', /^quotas\/(?<region>[^/]+)$/, (p) => ({ quotas: quotas.rows(p.account ?? accountId, p.region ?? '') })],
    ['POST', /^quotas\/approve$/, decide],
    ['PUT', /^quotas\/(?<region>[^/]+)\/(?<code>[^/]+)$/, setQuota],
  ];
  return routes;
}

/** The interface that is not part of AWS: calls for faults and quotas, described in docs/sandbox.md. */
export function adminHandler(deps: AdminDeps): Handler {
  const routes = routesOf(deps);
  return async (request, body) => {
    const url = new URL(request.url ?? '/', 'http://sandbox');
    const path = url.pathname.slice(ADMIN_PREFIX.length);
    for (const [method, pattern, act] of routes) {
      const match = pattern.exec(path);
      if (!match || method !== request.method) continue;
      return perform(() => act({ ...Object.fromEntries(url.searchParams), ...match.groups }, parse(body)));
    }
    return { status: 404, body: { message: `no such call: ${request.method} ${url.pathname}` } };
  };
}

/** `seconds: must ..., got -1`. */
function sentence({ path, message, input }: z.core.$ZodIssue): string {
  return `${path.join('.') || 'the document'}: ${message}, got ${JSON.stringify(input)}`;
}

function parse(body: Buffer): unknown {
  return body.length === 0 ? undefined : JSON.parse(body.toString('utf8'));
}

async function perform(act: () => unknown): Promise<Answer> {
  try {
    const result = await act();
    if (result === false) return { status: 404, body: { message: 'there is none' } };
    return typeof result === 'object' ? { status: 200, body: result } : { status: 204, body: undefined };
  } catch (error) {
    if (error instanceof z.ZodError) return { status: 400, body: { message: error.issues.map(sentence).join('; ') } };
    if (error instanceof SyntaxError) return { status: 400, body: { message: `body must be JSON: ${error.message}` } };
    throw error;
  }
}
