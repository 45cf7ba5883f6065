import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { rootCertificates } from 'node:tls';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface Certificate {
  keyFile: string;
  certFile: string;
  /**
   * The machine's own certificate authorities and `certFile`: for variables that replace the trusted authorities of a program, such as
   * SSL_CERT_FILE.
   */
  bundleFile: string;
}

/** Locations of the trusted certificate authorities on Debian, Red Hat, SUSE, macOS and Alpine. */
const SYSTEM_BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

/**
 * Creates (once) a certificate for 127.0.0.1 and localhost with the machine's `openssl`, and the bundle that contains it.
 * @param env of the person who starts the sandbox: certificate authorities of a company proxy stay trusted
 */
export async function ensureCertificate(folder: string, env: NodeJS.ProcessEnv = process.env): Promise<Certificate> {
  const [keyFile, certFile, bundleFile] = ['key.pem', 'cert.pem', 'bundle.pem'].map((name) =>
    path.join(folder, name),
  ) as [string, string, string];
  if (!existsSync(keyFile) || !existsSync(certFile)) {
    mkdirSync(folder, { recursive: true });
    const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost'];
    const files = ['-keyout', keyFile, '-out', certFile];
    await run('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...files, '-days', '365', ...subject]);
  }
  writeFileSync(bundleFile, trusted(env, certFile, bundleFile));
  return { keyFile, certFile, bundleFile };
}

/** The currently trusted certificate authorities, in PEM, and the certificate. An earlier bundle of ours is not included again. */
function trusted(env: NodeJS.ProcessEnv, certFile: string, bundleFile: string): string {
  const usable = (file: string | undefined): file is string =>
    file !== undefined && file !== bundleFile && file !== certFile && existsSync(file);
  const base = [env.SSL_CERT_FILE, env.REQUESTS_CA_BUNDLE, ...SYSTEM_BUNDLES].find(usable);
  const roots = base ? readFileSync(base, 'utf8') : rootCertificates.join('\n');
  const more = usable(env.NODE_EXTRA_CA_CERTS) ? readFileSync(env.NODE_EXTRA_CA_CERTS, 'utf8') : '';
  return `${[roots, more, readFileSync(certFile, 'utf8')].map((text) => text.trim()).join('\n')}\n`;
}
