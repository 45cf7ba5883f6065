import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import http, { type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Certificate } from '../ministack/certificate';
import { logError, ServiceError } from './api-call';

/** The answer of a handler: a JSON document, or `drop` to close the connection without an answer. */
export type Answer = { status: number; body: unknown } | 'drop';

/** Answers one request whose body has been read. */
export type Handler = (request: IncomingMessage, body: Buffer) => Promise<Answer>;

export type HttpServer = Awaited<ReturnType<typeof listen>>;

/** Largest body that a service reads; the real services reject far smaller requests. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** Listens on 127.0.0.1, over TLS if a certificate is given. */
export async function listen(handler: Handler, certificate?: Certificate) {
  const onRequest = (request: IncomingMessage, response: ServerResponse) => void serve(handler, request, response);
  const server = certificate
    ? https.createServer(
        { key: readFileSync(certificate.keyFile), cert: readFileSync(certificate.certFile) },
        onRequest,
      )
    : http.createServer(onRequest);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return { url: `${certificate ? 'https' : 'http'}://127.0.0.1:${port}`, port, close: () => close(server) };
}

function close(server: http.Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

async function serve(handler: Handler, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const answer = await readBody(request)
    .then((body) => {
      refuseForeign(request.headers);
      return handler(request, body);
    })
    .catch(errorAnswer);
  if (answer === 'drop') {
    request.socket.destroy();
    return;
  }
  const text = answer.body === undefined ? '' : JSON.stringify(answer.body);
  response.writeHead(answer.status, {
    'content-type': 'application/x-amz-json-1.1',
    'content-length': Buffer.byteLength(text),
    'x-amzn-requestid': randomUUID(),
  });
  response.end(text);
}

const OWN_HOST = /^(127\.0\.0\.1|([\w-]+\.)*localhost)(:\d+)?$/;

/**
 * Refuses what a browser sends for a page that is not ours, also under a name that its owner lets resolve to 127.0.0.1: any page could
 * otherwise run code here. emulator/launch.py does the same in front of MiniStack.
 */
function refuseForeign({ host = '', origin = `http://${host}`, 'sec-fetch-site': site = 'none' }: IncomingHttpHeaders) {
  const isOwn =
    OWN_HOST.test(host) && origin.replace(/^https?:\/\//, '') === host && /^(none|same-origin)$/.test(String(site));
  if (!isOwn)
    throw new ServiceError('AccessDenied', 'the sandbox answers programs on this machine, and no web pages', 403);
}

/** An error in the services' format; an error that is not a ServiceError is a bug of ours and is returned as an internal error. */
export function errorAnswer(error: unknown): Answer {
  if (error instanceof ServiceError) {
    return { status: error.status, body: { __type: error.code, message: error.message, Message: error.message } };
  }
  logError(String(error instanceof Error ? error.stack : error));
  return {
    status: 500,
    body: { __type: 'InternalFailure', message: 'We encountered an internal error. Please try again.' },
  };
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw new ServiceError('RequestEntityTooLarge', 'The request body is too large', 413);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
