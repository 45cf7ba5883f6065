import http from 'node:http';
import https from 'node:https';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { Agent, type AgentConnectOpts } from 'agent-base';
import { HttpsProxyAgent } from 'https-proxy-agent';
import { getProxyForUrl } from 'proxy-from-env';
import { CONTROL_TIMEOUT_SECONDS } from '../core/contracts/launcher';
import { endsAfter } from '../shared/aws/ends-after';

/** Connections through the proxy that HTTPS_PROXY and NO_PROXY name for a host, and direct ones to all others. */
class ProxyFromEnvironment extends Agent {
  override connect(_: http.ClientRequest, { host = '' }: AgentConnectOpts): http.Agent {
    const proxy = getProxyForUrl(`https://${host}`);
    return proxy ? new HttpsProxyAgent(proxy) : https.globalAgent;
  }
}

/** Times after which a connection, and an answer that has not begun, fail: the launcher may take a minute. */
const CONNECT_MS = 10_000;
const ANSWER_MS = (CONTROL_TIMEOUT_SECONDS + 10) * 1000;

const agent = new ProxyFromEnvironment();
const requestHandler = new NodeHttpHandler({ ...endsAfter(ANSWER_MS, CONNECT_MS), httpsAgent: agent });

/** A client of AWS for a verb: through the proxy of the environment, and with a time after which a call fails. */
export const awsClient = <Client, Settings extends object>(
  make: new (settings: Settings) => Client,
  settings: Settings,
): Client => new make({ requestHandler, ...settings });

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
