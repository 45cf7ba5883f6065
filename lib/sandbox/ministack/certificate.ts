import { execFile } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Files of a self-signed certificate; clients trust `certFile` as their only extra authority. */
export interface Certificate {
  keyFile: string;
  certFile: string;
}

/** Makes (once) a certificate for 127.0.0.1 and localhost with the `openssl` of the machine. */
export async function ensureCertificate(folder: string): Promise<Certificate> {
  const certificate = { keyFile: path.join(folder, 'key.pem'), certFile: path.join(folder, 'cert.pem') };
  if (existsSync(certificate.keyFile) && existsSync(certificate.certFile)) return certificate;
  mkdirSync(folder, { recursive: true });
  const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost'];
  const files = ['-keyout', certificate.keyFile, '-out', certificate.certFile];
  await run('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...files, '-days', '365', ...subject]);
  return certificate;
}
