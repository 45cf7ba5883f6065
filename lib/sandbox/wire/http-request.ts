import http from 'node:http';
import https from 'node:https';
import { text } from 'node:stream/consumers';

export function requestText(
  url: URL,
  options: https.RequestOptions,
  body?: string,
): Promise<{ status: number; text: string }> {
  const { request } = url.protocol === 'https:' ? https : http;
  return new Promise((resolve, reject) => {
    request(url, options, (response) => {
      text(response).then((all) => resolve({ status: response.statusCode ?? 0, text: all }), reject);
    })
      .on('error', reject)
      .end(body);
  });
}
