// The documentation site builds without dead links, needs nobody else to be read, and opens without an error in a browser.
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { pages } from '../support/pages';
import { ROOT } from '../support/repository-files';

const CHROMIUM = ['chromium', 'chromium-browser', 'google-chrome'].find(
  (name) => spawnSync(name, ['--version']).status === 0,
);
const TYPES: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };

let site: string;
let server: Server;
let build: { status: number | null; stderr: string };
beforeAll(async () => {
  site = mkdtempSync(path.join(tmpdir(), 'slipway-site-'));
  build = spawnSync(path.join(ROOT, 'node_modules/.bin/vitepress'), ['build', 'docs', '--outDir', site], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  server = createServer((request, response) => {
    const file = path.join(
      site,
      decodeURIComponent((request.url ?? '/').split('?')[0] ?? '').replace(/\/$/, '/index.html'),
    );
    try {
      const body = readFileSync(file);
      response.writeHead(200, { 'content-type': TYPES[path.extname(file)] ?? 'application/octet-stream' }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
});
afterAll(() => {
  server?.close();
  if (site) rmSync(site, { recursive: true, force: true });
});

const filesOf = (extension: string): string[] =>
  readdirSync(site, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith(extension));

test('it builds, dead links refused, with a page for each page of docs/', () => {
  expect(build.status, build.stderr).toBe(0);
  const expected = pages().filter((page) => page.startsWith('docs/'));
  const made = expected.map((page) =>
    page
      .replace(/^docs\//, '')
      .replace(/(README|index)\.md$|\.md$/, '$1.html')
      .replace('README', 'index'),
  );
  expect(filesOf('.html')).toEqual(expect.arrayContaining(made));
});

/** Ids of the elements of a page. */
const idsOf = (file: string) =>
  new Set([...readFileSync(path.join(site, file), 'utf8').matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));

test('every link of a page as it was built leads to a page, and to a place in it', () => {
  const html = new Map(filesOf('.html').map((file) => [file, idsOf(file)]));
  const dead = [...html.keys()].flatMap((file) =>
    [...readFileSync(path.join(site, file), 'utf8').matchAll(/<a[^>]* href="(?![a-z]+:)([^"#]*)#?([^"]*)"/g)]
      .filter(([, address = '', place = '']) => {
        const below = address.startsWith('/') ? address.slice(1) : path.join(path.dirname(file), address);
        const ids = html.get(address === '' ? file : below.replace(/(^|\/)\.?$/, '$1index.html'));
        return !ids || (place !== '' && !ids.has(decodeURIComponent(place)));
      })
      .map(([, address, place]) => `${file}: ${address}#${place}`),
  );
  expect([html.size > 100, dead]).toEqual([true, []]);
});

test('nothing is loaded from elsewhere', () => {
  const loads = /<(?:script|link|img)[^>]+(?:src|href)="(https?:)?\/\/[^"]*"/g;
  const found = filesOf('.html').flatMap((file) => readFileSync(path.join(site, file), 'utf8').match(loads) ?? []);
  expect(found).toEqual([]);
  const styles = filesOf('.css').flatMap(
    (file) => readFileSync(path.join(site, file), 'utf8').match(/url\(["']?https?:/g) ?? [],
  );
  expect(styles).toEqual([]);
});

const WIDTHS = [500, 1280];
const SCHEMES = [0, 1];
const OPENED = ['/', '/guides/survive-failures.html', '/reference/run-file.html', '/assumptions.html', '/rules/'];

test.skipIf(!CHROMIUM).each(OPENED)(
  '%s opens without a message in the console, wide and narrow, dark and light',
  async (address) => {
    const { port } = server.address() as AddressInfo;
    for (const width of WIDTHS)
      for (const scheme of SCHEMES) {
        const { error, said } = await browse(`http://127.0.0.1:${port}${address}`, width, scheme);
        expect([error, said.split('\n').filter((line) => line.includes('CONSOLE'))]).toEqual([null, []]);
      }
  },
);

/** What the browser says on stderr while it opens a page; this process must stay free to serve it. */
const browse = (url: string, width: number, scheme: number): Promise<{ error: Error | null; said: string }> =>
  new Promise((resolve) => {
    const options = [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--enable-logging=stderr',
      '--virtual-time-budget=5000',
      `--user-data-dir=${path.join(site, '.browser')}`,
      `--window-size=${width},900`,
      `--blink-settings=preferredColorScheme=${scheme}`,
      '--dump-dom',
      url,
    ];
    execFile(CHROMIUM ?? '', options, { encoding: 'utf8', maxBuffer: 1 << 26, timeout: 60_000 }, (error, _, said) =>
      resolve({ error, said }),
    );
  });
