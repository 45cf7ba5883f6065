/** Headers of requests that web pages make a browser send to the sandbox. PORT is the port of the server. */
export const FOREIGN: Readonly<Record<string, string>>[] = [
  { origin: 'https://pages.example' },
  { origin: 'null' },
  { origin: 'http://127.0.0.1:1' },
  { origin: 'http://127.0.0.1:PORT.pages.example' },
  { host: 'pages.example:PORT' },
  { host: '127.0.0.1.pages.example:PORT' },
  { host: 'localhost.pages.example' },
  // A name that resolves to 127.0.0.1 for its second request.
  { host: 'pages.example:PORT', origin: 'http://pages.example:PORT' },
  // An image or a link: a GET without an origin.
  { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' },
  { 'sec-fetch-site': 'same-site' },
];

/** Headers of programs, and of a page of the sandbox itself. */
export const OWN: Readonly<Record<string, string>>[] = [
  {},
  { host: '127.0.0.1:PORT' },
  { host: 'localhost:PORT' },
  { host: 'bucket.localhost:PORT' },
  { origin: 'http://127.0.0.1:PORT', 'sec-fetch-site': 'same-origin' },
  // An address that a person types or pastes.
  { 'sec-fetch-site': 'none' },
  // What fetch of Node sends.
  { 'sec-fetch-mode': 'cors' },
];

/** The headers for a server on a port. */
export const own = (headers: Readonly<Record<string, string>>, port: number): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.replaceAll('PORT', String(port))]));
