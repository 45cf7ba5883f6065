import http from 'node:http';
import https from 'node:https';
import type { AwsFault } from '../faults/fault';
import type { FaultEntry } from '../faults/fault-plan';
import { requestText } from '../wire/http-request';

export interface SessionCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string;
}

/** Who signed a request. */
interface Identity {
  account: string;
  /** ARN of the principal; null when the key is unknown, which only matters with enforcement. */
  arn: string | null;
  /** Why the credentials are rejected (only with enforcement). */
  refused: { code: string; message: string } | null;
}

/** The signed parts of a request as received, with header names in lower case. */
export interface SignedRequest {
  accessKeyId: string;
  sessionToken?: string;
  method: string;
  path: string;
  headers: Record<string, string>;
}

/** An IAM question: a principal, an action, a resource and condition keys. */
export interface PermissionQuestion {
  action: string;
  resource: string;
  /** Condition keys of the request, such as `iam:PassedToService`. */
  context?: Record<string, string | string[]>;
}

/** The private route to MiniStack that emulator/launch.py adds: IAM's own evaluation, and events from `aws.*` sources. */
export class Hook {
  private readonly agent: http.Agent;

  constructor(
    private readonly endpoint: string,
    private readonly token: string,
    ca?: Buffer,
  ) {
    const options = { keepAlive: true, maxSockets: 8 };
    this.agent = endpoint.startsWith('https') ? new https.Agent({ ...options, ca }) : new http.Agent(options);
  }

  async ready(): Promise<boolean> {
    try {
      return (await this.request('GET', '/_ministack/ready')).status === 200;
    } catch {
      return false; // not listening yet
    }
  }

  identify(request: SignedRequest, enforce: boolean): Promise<Identity> {
    return this.call('identify', { ...request, enforce });
  }

  /** IAM's decision on each question; `ImplicitDeny` when no statement allows. */
  authorize(
    request: Record<'accessKeyId' | 'region', string> & { sessionToken?: string; questions: PermissionQuestion[] },
  ): Promise<{ decisions: ('Allow' | 'Deny' | 'ImplicitDeny')[] }> {
    return this.call('authorize', request);
  }

  /** Whether the role exists and its trust policy lets the service assume it. */
  trusts(
    request: Record<'roleArn' | 'service' | 'region', string> & { context: Record<string, string> },
  ): Promise<{ trusted: boolean }> {
    return this.call('trusts', request);
  }

  putEvent(account: string, region: string, entry: object): Promise<{ FailedEntryCount: number }> {
    return this.call('put-event', { account, region, entry });
  }

  addFault(entry: { id: string; fault: AwsFault }): Promise<FaultEntry<AwsFault>> {
    return this.call('add-fault', entry);
  }

  async listFaults(): Promise<FaultEntry<AwsFault>[]> {
    return (await this.call<{ faults: FaultEntry<AwsFault>[] }>('list-faults', {})).faults;
  }

  /** Removes one fault, or all. Returns their number. */
  async removeFaults(id?: string): Promise<number> {
    return (await this.call<{ removed: number }>('remove-faults', { id })).removed;
  }

  /** Credentials of a role's session, for a service whose trust has already been checked. */
  assume(roleArn: string, sessionName: string, seconds: number): Promise<SessionCredentials> {
    return this.call('assume', { roleArn, sessionName, seconds });
  }

  close(): void {
    this.agent.destroy();
  }

  private async call<T>(name: string, body: unknown): Promise<T> {
    const { status, text } = await this.request('POST', `/_slipway/${name}`, JSON.stringify(body));
    if (status !== 200) throw new Error(`sandbox: MiniStack hook ${name} must answer 200, got ${status}: ${text}`);
    return JSON.parse(text) as T;
  }

  private request(method: string, path: string, body = ''): Promise<{ status: number; text: string }> {
    const headers = { 'content-type': 'application/json', 'x-slipway-token': this.token };
    return requestText(new URL(path, this.endpoint), { method, headers, agent: this.agent }, body);
  }
}
