import type { Construct } from 'constructs';

/** Context key: `-c sandbox=1` leaves out what the embedded AWS cannot deploy, `-c sandbox=0` never does. */
export const SANDBOX_CONTEXT = 'sandbox';

const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]'];

/**
 * Whether the app is synthesised for the embedded AWS: the context is set, or the CloudFormation endpoint is on this machine, as `slipway
 * sandbox env` sets it. embedded-aws.ts lists what is left out in that case; everything else is the same template.
 */
export function isSandbox(scope: Construct, env: NodeJS.ProcessEnv = process.env): boolean {
  const value: unknown = scope.node.tryGetContext(SANDBOX_CONTEXT);
  if (value === undefined || value === '') return embeddedEndpoint(env) !== undefined;
  return value === true || value === 1 || value === '1' || value === 'true';
}

/** The CloudFormation endpoint if it is on this machine. Endpoints of AWS, VPC endpoints and proxies for them never are. */
export function embeddedEndpoint(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const endpoint = env.AWS_ENDPOINT_URL_CLOUDFORMATION || env.AWS_ENDPOINT_URL;
  if (!endpoint || env.AWS_IGNORE_CONFIGURED_ENDPOINT_URLS === 'true') return undefined;
  return URL.canParse(endpoint) && LOOPBACK.includes(new URL(endpoint).hostname) ? endpoint : undefined;
}
