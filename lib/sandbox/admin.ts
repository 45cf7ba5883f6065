import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import type { FaultRegistry } from './faults/fault-plan';
import type { QuotaStore } from './quotas/quota-store';
import type { IncreaseRequests } from './quotas/service-quotas';
import type { Answer } from './wire/http-server';

export const ADMIN_PREFIX = '/_slipway/';

export interface AdminDeps {
  faults: FaultRegistry;
  quotas: QuotaStore;
  increases: IncreaseRequests;
  /** Account of calls that name none. */
  accountId: string;
}

type Parameters = Record<string, string>;
type Route = [method: string, path: RegExp, act: (parameters: Parameters, body: unknown) => unknown];

const quotaBody = z.strictObject({ value: z.number().nonnegative().nullable(), name: z.string().optional() });
const decisionBody = z.strictObject({
  region: z.string(),
  code: z.string().optional(),
  decision: z.enum(['APPROVED', 'DENIED']).default('APPROVED'),
});

/** The interface that is not part of AWS: calls for faults and quotas, described in docs/sandbox.md. */
export class Admin {
  private readonly routes: Route[];

  constructor({ faults, quotas, increases, accountId }: AdminDeps) {
    const accountOf = (p: Parameters) => p.account ?? accountId;
    this.routes = [
      ['GET', /^faults$/, async () => ({ faults: await faults.list() })],
      ['POST', /^faults$/, (_, body) => faults.add(body)],
      ['DELETE', /^faults$/, () => faults.clear()],
      ['DELETE', /^faults\/(?<id>[^/]+)$/, (p) => faults.remove(p.id ?? '').then(found)],
      ['GET', /^quotas\/(?<region>[^/]+)$/, (p) => ({ quotas: quotas.rows(accountOf(p), p.region ?? '') })],
      [
        'POST',
        /^quotas\/approve$/,
        (p, body) => {
          const { region, code, decision } = decisionBody.parse(body, { reportInput: true });
          return { requests: increases.decide(accountOf(p), region, decision, code) };
        },
      ],
      [
        'PUT',
        /^quotas\/(?<region>[^/]+)\/(?<code>[^/]+)$/,
        (p, body) => {
          const { value, name } = quotaBody.parse(body, { reportInput: true });
          const [account, region, code] = [accountOf(p), p.region ?? '', p.code ?? ''];
          return value === null
            ? found(quotas.remove(account, region, code))
            : quotas.set(account, region, { code, value, name });
        },
      ],
    ];
  }

  readonly handle = async (request: IncomingMessage, body: Buffer): Promise<Answer> => {
    const url = new URL(request.url ?? '/', 'http://sandbox');
    const path = url.pathname.slice(ADMIN_PREFIX.length);
    for (const [method, pattern, act] of this.routes) {
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

class NotFound extends Error {}

function found(there: boolean): void {
  if (!there) throw new NotFound('there is none');
}

function parse(body: Buffer): unknown {
  return body.length === 0 ? undefined : JSON.parse(body.toString('utf8'));
}

async function perform(act: () => unknown): Promise<Answer> {
  try {
    const result = await act();
    return result === undefined ? { status: 204, body: undefined } : { status: 200, body: result };
  } catch (error) {
    if (error instanceof NotFound) return { status: 404, body: { message: error.message } };
    if (error instanceof z.ZodError) return { status: 400, body: { message: error.issues.map(sentence).join('; ') } };
    if (error instanceof SyntaxError) return { status: 400, body: { message: `body must be JSON: ${error.message}` } };
    throw error;
  }
}
