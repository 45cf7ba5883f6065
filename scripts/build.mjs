// Builds what `npm run build` promises: the CDK app and the library as CommonJS with declarations (tsc), the CLI, the embedded AWS for tests and
// the Lambda handlers as lazily loaded ESM that shares chunks (target node20, SDK inside, so that synth bundles nothing), and the script of
// the Python client.
// A part of which nothing has changed since the last build is not made again.
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { build } from 'esbuild';
import { inputsOf, isBuilt, recordBuild } from './build-state.mjs';
import { pruneDeclarations } from './prune-declarations.mjs';
import { separateCommandLine } from './separate-command-line.mjs';

const root = path.resolve(import.meta.dirname, '..');
process.chdir(root);
const only = process.argv.slice(2);
/** What each part writes. */
const OUTPUTS = {
  lib: ['dist/lib', 'dist/bin'],
  bundles: ['dist/cli', 'dist/handlers'],
  python: ['clients/python/src/slipway/report.js'],
};
/** What they read; the file in node_modules names every package that is installed. */
const INPUTS = inputsOf([
  ...['bin', 'lib', 'docs/runbooks.md', 'package.json', 'node_modules/.package-lock.json'],
  ...['tsconfig.json', 'tsconfig.build.json'],
  ...['build', 'build-state', 'prune-declarations', 'separate-command-line'].map((name) => `scripts/${name}.mjs`),
  'scripts/python-report.ts',
]);
/** Names of what a caller asks for, by the part that has it. */
const NAMES = { lib: ['lib'], bundles: ['cli', 'handlers'], python: ['python'] };
/** Whether a part is asked for, and anything has changed since it was made. */
const wants = (part) =>
  (only.length === 0 || only.some((name) => NAMES[part].includes(name))) && !isBuilt(part, INPUTS, OUTPUTS[part]);
const made = (part) => recordBuild(part, INPUTS, OUTPUTS[part]);

/**
 * Replaces a module that is never used and would be bundled: messages of zod in languages other than English; of the MCP server, the validator
 * of answers to questions to its client, which it asks none, and its support for zod 3; names of browsers in the SDK's user agent; messages for the developers of the proxy agents.
 */
const instead = (name, filter, contents) => ({ name, setup: ({ onLoad }) => onLoad({ filter }, () => ({ contents })) });

/** Modules come before CommonJS, of which nothing could be left out. */
const COMMON = {
  bundle: true,
  platform: 'node',
  target: 'node20',
  mainFields: ['module', 'main'],
  minify: true,
  legalComments: 'none',
  logLevel: 'warning',
  plugins: [
    instead('zod-locales', /zod\/v4\/locales\/index\.js$/, "export { default as en } from './en.js';"),
    instead('mcp-validator', /validation\/ajv-provider\.js$/, 'export class AjvJsonSchemaValidator {}'),
    instead(
      'mcp-zod-v3',
      /(zod\/v3\/index|zod-to-json-schema\/dist\/esm\/index)\.js$/,
      'export const object = null, zodToJsonSchema = null;',
    ),
    instead('browser-names', /bowser\/.*\.m?js$/, 'export default {};'),
    instead('debug-messages', /node_modules\/debug\/.*\.js$/, 'export default () => () => undefined;'),
    {
      // The SDK's user agent has the versions of clients and nothing else of their manifests.
      name: 'aws-manifests',
      setup: ({ onLoad }) =>
        onLoad({ filter: /@aws-sdk\/[\w-]+\/package\.json$/ }, ({ path: file }) => {
          const { version } = JSON.parse(readFileSync(file, 'utf8'));
          return { contents: JSON.stringify({ version }), loader: 'json' };
        }),
    },
    {
      // Half a megabyte of the client of EC2 alone: a computed key counts as a side effect, so that no schema of an operation could be left out.
      name: 'aws-schemas',
      setup: ({ onLoad }) =>
        onLoad({ filter: /@aws-sdk\/client-[\w-]+\/dist-es\/schemas\/schemas_\d+\.js$/ }, ({ path: file }) => {
          const text = readFileSync(file, 'utf8');
          const names = new Map(
            [...text.matchAll(/^const (\w+) = (".*");$/gm)].map(([, name, value]) => [name, value]),
          );
          return {
            contents: text.replace(/\[(\w+)\]:/g, (key, name) => (names.has(name) ? `${names.get(name)}:` : key)),
          };
        }),
    },
  ],
};

if (wants('lib')) {
  for (const folder of ['dist/lib', 'dist/bin']) rmSync(folder, { recursive: true, force: true });
  execFileSync('node_modules/.bin/tsc', ['--singleThreaded', '-p', 'tsconfig.build.json'], { stdio: 'inherit' });
  pruneDeclarations();
  await build({
    ...COMMON,
    entryPoints: ['lib/cdk/index.ts', 'bin/app.ts'],
    outbase: '.',
    outdir: 'dist',
    packages: 'external',
    format: 'cjs',
    // Stack traces show the line and the name.
    lineLimit: 1000,
    keepNames: true,
    plugins: [
      {
        // The app takes the constructs from the library beside it.
        name: 'own-library',
        setup: ({ onResolve }) =>
          onResolve({ filter: /^\.\.\/lib\/cdk$/ }, () => ({ path: '../lib/cdk/index.js', external: true })),
      },
    ],
  });
  made('lib');
}

if (wants('bundles')) {
  for (const folder of ['dist/cli', 'dist/handlers']) rmSync(folder, { recursive: true, force: true });
  const handlers = readdirSync('lib/control', { withFileTypes: true })
    .filter((d) => d.isDirectory() && existsSync(`lib/control/${d.name}/index.ts`))
    .map(({ name }) => [`handlers/${name}/index`, `lib/control/${name}/index.ts`]);
  const entryPoints = { 'cli/slipway': 'bin/slipway.ts', 'cli/testing': 'lib/sandbox/testing.ts' };
  // They and the functions share most of their code, and all functions are in one folder, which a deploy uploads once.
  const { metafile } = await build({
    ...COMMON,
    entryPoints: { ...entryPoints, ...Object.fromEntries(handlers) },
    outdir: 'dist',
    chunkNames: 'handlers/[name]-[hash]',
    outExtension: { '.js': '.mjs' },
    splitting: true,
    metafile: true,
    format: 'esm',
    legalComments: 'eof',
    // The notices of reconcile contain what the runbooks say; charts leave out their checks for developers.
    define: {
      SLIPWAY_RUNBOOKS: JSON.stringify(readFileSync('docs/runbooks.md', 'utf8')),
      'process.env.NODE_ENV': '"production"',
    },
    banner: {
      js: "import { createRequire as __cr } from 'node:module'; const require = __cr(import.meta.url); const __dirname = import.meta.dirname;",
    },
  });
  separateCommandLine(metafile.outputs);
  chmodSync('dist/cli/slipway.mjs', 0o755);
  made('bundles');
}

// The script in the report pages of the Python client.
if (wants('python')) {
  await build({
    entryPoints: ['scripts/python-report.ts'],
    outfile: 'clients/python/src/slipway/report.js',
    bundle: true,
    format: 'iife',
    platform: 'browser',
    target: 'es2022',
    minify: true,
    legalComments: 'none',
    logLevel: 'warning',
  });
  made('python');
}
