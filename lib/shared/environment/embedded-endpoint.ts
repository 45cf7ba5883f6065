const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]'];

/** The endpoint of the embedded AWS if the variables name one, as `slipway sandbox env` sets them; those of AWS, VPC endpoints and proxies are never on this machine. */
export function embeddedEndpoint(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const endpoint = env.AWS_ENDPOINT_URL_CLOUDFORMATION || env.AWS_ENDPOINT_URL;
  if (!endpoint || env.AWS_IGNORE_CONFIGURED_ENDPOINT_URLS === 'true') return undefined;
  return URL.canParse(endpoint) && LOOPBACK.includes(new URL(endpoint).hostname) ? endpoint : undefined;
}

const AWS_HOST = /\.(amazonaws\.com|amazonaws\.com\.cn|api\.aws)$/;

/** Whether the variables name an endpoint that is not of AWS: an emulator or a proxy, whose answers are no evidence. */
export const hasForeignEndpoint = (env: NodeJS.ProcessEnv = process.env): boolean =>
  Object.entries(env).some(
    ([name, url = '']) =>
      name.startsWith('AWS_ENDPOINT_URL') && url !== '' && !(URL.canParse(url) && AWS_HOST.test(new URL(url).hostname)),
  );
