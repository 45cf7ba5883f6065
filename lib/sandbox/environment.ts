import path from 'node:path';

interface Places {
  /** Endpoint of MiniStack. */
  aws: string;
  /** Endpoint of our services. */
  services: string;
  /** Authority to trust, in auth mode. */
  certFile?: string;
}

/** Where the services are that MiniStack does not have; these names win over AWS_ENDPOINT_URL in every SDK. */
export const endpointEnv = (services: string): Record<string, string> => ({
  AWS_ENDPOINT_URL_SAGEMAKER: services,
  AWS_ENDPOINT_URL_SERVICE_QUOTAS: services,
});

/** The private authority under every name that runtimes and SDKs read. */
function trustEnv(certFile: string | undefined): Record<string, string> {
  if (!certFile) return {};
  return {
    NODE_EXTRA_CA_CERTS: certFile,
    AWS_CA_BUNDLE: certFile,
    SSL_CERT_FILE: certFile,
    REQUESTS_CA_BUNDLE: certFile,
  };
}

function awsEnv(places: Places): Record<string, string> {
  return {
    AWS_ENDPOINT_URL: places.aws,
    AWS_ENDPOINT_URL_S3: places.aws,
    ...endpointEnv(places.services),
    ...trustEnv(places.certFile),
    // Without these a client without credentials would wait for a metadata service that is not there.
    AWS_EC2_METADATA_DISABLED: 'true',
  };
}

/** Environment of a client on this machine: root of the account. */
export function clientEnv(places: Places & { region: string; accountId: string }): Record<string, string> {
  return {
    ...awsEnv(places),
    AWS_ACCESS_KEY_ID: places.accountId,
    AWS_SECRET_ACCESS_KEY: 'test',
    AWS_REGION: places.region,
    AWS_DEFAULT_REGION: places.region,
  };
}

/** Environment of every container; credentials come from the container credentials endpoint. */
export function containerEnv(places: Places & { pythonBin?: string }): Record<string, string> {
  const system = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  const folders = places.pythonBin ? [path.dirname(path.resolve(places.pythonBin)), system] : [system];
  return { ...awsEnv(places), PATH: folders.join(':') };
}
