import path from 'node:path';
import type { Certificate } from './ministack/certificate';

interface Places {
  /** Endpoint of MiniStack. */
  aws: string;
  /** Endpoint of our services. */
  services: string;
  /** Certificate authorities to trust, in auth mode. */
  certificate?: Pick<Certificate, 'certFile' | 'bundleFile'>;
}

/** Endpoints of the services that MiniStack does not have; in every SDK these variables take precedence over AWS_ENDPOINT_URL. */
export const endpointEnv = (services: string): Record<string, string> => ({
  AWS_ENDPOINT_URL_SAGEMAKER: services,
  AWS_ENDPOINT_URL_SERVICE_QUOTAS: services,
});

/** Shell variables that would take precedence over the sandbox's credentials, or that belong to other credentials. */
export const UNSET_FOR_CLIENTS = ['AWS_SESSION_TOKEN', 'AWS_SECURITY_TOKEN', 'AWS_PROFILE', 'AWS_DEFAULT_PROFILE'];

/**
 * The certificate authority under every variable that runtimes and SDKs read. All except Node's replace the trusted authorities, so they
 * also get those of the system.
 */
function trustEnv(certificate: Places['certificate']): Record<string, string> {
  if (!certificate) return {};
  const { certFile, bundleFile } = certificate;
  return {
    NODE_EXTRA_CA_CERTS: certFile,
    AWS_CA_BUNDLE: bundleFile,
    SSL_CERT_FILE: bundleFile,
    REQUESTS_CA_BUNDLE: bundleFile,
    CURL_CA_BUNDLE: bundleFile,
  };
}

function awsEnv(places: Places): Record<string, string> {
  return {
    AWS_ENDPOINT_URL: places.aws,
    AWS_ENDPOINT_URL_S3: places.aws,
    ...endpointEnv(places.services),
    ...trustEnv(places.certificate),
    // Without these, a client without credentials would wait for a metadata service that does not exist.
    AWS_EC2_METADATA_DISABLED: 'true',
  };
}

/** Environment of a client on this machine, as the root user of the account. */
export function clientEnv(places: Places & { region: string; accountId: string }): Record<string, string> {
  return {
    ...awsEnv(places),
    AWS_ACCESS_KEY_ID: places.accountId,
    AWS_SECRET_ACCESS_KEY: 'test',
    AWS_REGION: places.region,
    AWS_DEFAULT_REGION: places.region,
  };
}

const anywhere = { aws: '', services: '', region: '', accountId: '', certificate: { certFile: '', bundleFile: '' } };
/** Every variable of a client, with and without a certificate. */
export const CLIENT_VARIABLES: readonly string[] = Object.keys(clientEnv(anywhere));

/** Environment of every container; credentials come from the container credentials endpoint. */
export function containerEnv(places: Places & { pythonBin?: string }): Record<string, string> {
  const system = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  const folders = places.pythonBin ? [path.dirname(path.resolve(places.pythonBin)), system] : [system];
  return { ...awsEnv(places), PATH: folders.join(':') };
}
