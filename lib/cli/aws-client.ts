import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { type DefaultProviderInit, defaultProvider } from '@aws-sdk/credential-provider-node';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { Agent, type AgentConnectOpts } from 'agent-base';
import { HttpsProxyAgent } from 'https-proxy-agent';
import { getProxyForUrl } from 'proxy-from-env';
import { plainText } from '../core/config/formats/plain-text';
import { CONTROL_TIMEOUT_SECONDS } from '../core/contracts/launcher';
import { endsAfter } from '../shared/aws/ends-after';

/** What a proxy or a setting of the environment did not let through: `message` says what must hold, what came, what to do. */
class EgressError extends Error {
  override name = 'EgressError';
}

/** A tunnel through a proxy. Errors name the proxy without the password that its URL may contain. */
class Tunnel extends HttpsProxyAgent<string> {
  override async connect(...[request, options]: Parameters<HttpsProxyAgent<string>['connect']>) {
    let answer = { statusCode: 200, statusText: '' };
    request.once('proxyConnect', (given: typeof answer) => {
      answer = given;
    });
    const socket = await super.connect(request, options).catch(({ code, message }: NodeJS.ErrnoException) => {
      throw this.error(code ?? message, 'correct it, or name the hosts to call directly in NO_PROXY');
    });
    const { statusCode, statusText } = answer;
    if (statusCode === 407) throw this.error(`407 ${statusText}`, 'write its user and password into the URL');
    if (statusCode !== 200) throw this.error(`${statusCode} ${statusText}`, 'ask who runs it to let AWS through');
    return socket;
  }

  private error(got: string, fix: string): EgressError {
    return new EgressError(
      `must reach AWS through ${this.proxy.host}, the proxy of HTTPS_PROXY, got ${plainText(got)}; ${fix}`,
    );
  }
}

/** Connections through the proxy that HTTPS_PROXY and NO_PROXY name for a host, and direct ones to all others; both are kept open. */
class ProxyFromEnvironment extends Agent {
  private readonly direct = new https.Agent({ keepAlive: true });
  private readonly tunnels = new Map<string, Tunnel>();

  override connect(_: http.ClientRequest, options: AgentConnectOpts): http.Agent {
    Object.assign(options, certificates());
    const proxy = proxyFor(options.host ?? '');
    if (!proxy) return this.direct;
    const tunnel = this.tunnels.get(proxy) ?? new Tunnel(proxy, { keepAlive: true });
    this.tunnels.set(proxy, tunnel);
    return tunnel;
  }
}

/** The proxy for a host; empty if it is called directly. One without a scheme speaks HTTP, as for curl and the AWS CLI. */
function proxyFor(host: string): string {
  const named = getProxyForUrl(`https://${host}`);
  if (named === '') return '';
  const isAsWritten = Object.values(process.env).includes(named);
  const proxy = isAsWritten ? named : named.replace(/^https:/, 'http:');
  const got = URL.canParse(proxy) ? new URL(proxy).protocol : 'a text that is no URL';
  if (got === 'http:' || got === 'https:') return proxy;
  throw new EgressError(`HTTPS_PROXY must begin with http:// or https://, got ${got}; correct it, or unset it`);
}

/** Certificates in place of those of Node.js, from the variable that the AWS CLI, boto3 and the CDK read. */
function certificates(): { ca?: string } {
  const { AWS_CA_BUNDLE: file } = process.env;
  if (!file) return {};
  let got = 'a file without';
  try {
    const ca = readFileSync(file, 'utf8');
    if (ca.includes('-----BEGIN CERTIFICATE-----')) return { ca };
  } catch (error) {
    got = String((error as NodeJS.ErrnoException).code);
  }
  throw new EgressError(`AWS_CA_BUNDLE must be a file with certificates, got ${got}; correct it, or unset it`);
}

/** Times after which a connection, and an answer that has not begun, fail: the launcher may take a minute. */
const CONNECT_MS = 10_000;
const ANSWER_MS = (CONTROL_TIMEOUT_SECONDS + 10) * 1000;

const agent = new ProxyFromEnvironment({ keepAlive: true });
const requestHandler = new NodeHttpHandler({ ...endsAfter(ANSWER_MS, CONNECT_MS), httpsAgent: agent });

/** Clients that sign in make calls of their own: without the handler, those of IAM Identity Center pass by the proxy. */
const credentialDefaultProvider = (init: DefaultProviderInit) =>
  defaultProvider({ ...init, clientConfig: { requestHandler } });

/** A client of AWS for a verb: through the proxy of the environment, and with a time after which a call fails. */
export const awsClient = <Client, Settings extends object>(
  make: new (settings: Settings) => Client,
  settings: Settings,
): Client => new make({ requestHandler, credentialDefaultProvider, ...settings });

/**
 * Puts bytes to a URL, through the same proxy.
 * @returns the status of the answer
 */
export async function putBytes(
  url: string,
  headers: Readonly<Record<string, string>>,
  bytes: Buffer,
  signal: AbortSignal,
): Promise<number> {
  const isSecure = url.startsWith('https:');
  const options = { method: 'PUT', headers: { ...headers, 'content-length': bytes.length }, signal };
  const request = isSecure ? https.request(url, { ...options, agent }) : http.request(url, options);
  return new Promise((resolve, reject) => {
    request.on('error', reject).on('response', (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    request.end(bytes);
  });
}
