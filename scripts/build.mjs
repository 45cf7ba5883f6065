// Builds what `npm run build` promises: the CDK app and the library as CommonJS (tsc), the CLI as one lazily loaded
// ESM bundle, the Lambda handlers as another (target node20, SDK inside, so that synth bundles nothing), and the script of the Python client.
// A part of which nothing has changed since the last build is not made again.
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { build, transformSync } from 'esbuild';
import { inputsOf, isBuilt, recordBuild } from './build-state.mjs';
import { pruneLibrary } from './prune-library.mjs';

const root = path.resolve(import.meta.dirname, '..');
process.chdir(root);
const only = process.argv.slice(2);
/** What each part writes. */
const OUTPUTS = {
  lib: ['dist/lib', 'dist/bin'],
  cli: ['dist/cli'],
  handlers: ['dist/handlers'],
  python: ['clients/python/src/slipway/report.js'],
};
/** What they read; the file in node_modules names every package that is installed. */
const INPUTS = inputsOf([
  ...['bin', 'lib', 'docs/runbooks.md', 'package.json', 'node_modules/.package-lock.json'],
  ...['tsconfig.json', 'tsconfig.build.json'],
  ...['build', 'build-state', 'prune-library'].map((name) => `scripts/${name}.mjs`),
  'scripts/python-report.ts',
]);
/** Whether a part is asked for, and anything has changed since it was made. */
const wants = (part) => (only.length === 0 || only.includes(part)) && !isBuilt(part, INPUTS, OUTPUTS[part]);
const made = (part) => recordBuild(part, INPUTS, OUTPUTS[part]);

/** Names of classes stay, since error messages and logs show them. Modules come before CommonJS, of which nothing could be left out. */
const COMMON = {
  bundle: true,
  platform: 'node',
  target: 'node20',
  mainFields: ['module', 'main'],
  minify: true,
  keepNames: true,
  legalComments: 'none',
  logLevel: 'warning',
  plugins: [
    {
      // A tenth of a megabyte in every bundle: messages of zod in forty languages, of which English is used.
      name: 'zod-locales',
      setup: ({ onLoad }) =>
        onLoad({ filter: /zod\/v4\/locales\/index\.js$/ }, () => ({
          contents: "export { default as en } from './en.js';",
        })),
    },
    {
      // Half of the MCP server: a validator of answers to questions that a server may ask its client, which ours asks none.
      name: 'mcp-validator',
      setup: ({ onLoad }) =>
        onLoad({ filter: /@modelcontextprotocol\/sdk\/dist\/esm\/validation\/ajv-provider\.js$/ }, () => ({
          contents: 'export class AjvJsonSchemaValidator {}',
        })),
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

/**
 * Drops comments and indentation of the compiled library: its declarations have the comments too, an eighth of what is packed. Names and short
 * lines stay, which a stack trace needs.
 */
function compactLibrary(folder) {
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.js')) continue;
    const file = `${folder}/${name}`;
    writeFileSync(
      file,
      transformSync(readFileSync(file, 'utf8'), {
        loader: 'js',
        legalComments: 'none',
        minifyWhitespace: true,
        minifySyntax: true,
        lineLimit: 1000,
      }).code,
    );
  }
}

if (wants('lib')) {
  rmSync('dist/lib', { recursive: true, force: true });
  execFileSync('node_modules/.bin/tsc', ['--singleThreaded', '-p', 'tsconfig.build.json'], { stdio: 'inherit' });
  pruneLibrary();
  compactLibrary('dist/lib');
  made('lib');
}

if (wants('cli')) {
  rmSync('dist/cli', { recursive: true, force: true });
  await build({
    ...COMMON,
    entryPoints: { slipway: 'bin/slipway.ts' },
    outdir: 'dist/cli',
    legalComments: 'eof',
    outExtension: { '.js': '.mjs' },
    splitting: true,
    format: 'esm',
    banner: {
      js: "#!/usr/bin/env node\nimport { createRequire as __cr } from 'node:module'; const require = __cr(import.meta.url); const __dirname = import.meta.dirname;",
    },
  });
  chmodSync('dist/cli/slipway.mjs', 0o755);
  made('cli');
}

if (wants('handlers') && existsSync('lib/control')) {
  const names = readdirSync('lib/control', { withFileTypes: true })
    .filter((d) => d.isDirectory() && existsSync(`lib/control/${d.name}/index.ts`))
    .map((d) => d.name);
  // One folder for all functions: they share most of their code, and a deploy uploads it once.
  rmSync('dist/handlers', { recursive: true, force: true });
  await build({
    ...COMMON,
    entryPoints: Object.fromEntries(names.map((name) => [`${name}/index`, `lib/control/${name}/index.ts`])),
    outdir: 'dist/handlers',
    outExtension: { '.js': '.mjs' },
    splitting: true,
    format: 'esm',
    // The notices of reconcile contain what the runbooks say.
    define: { SLIPWAY_RUNBOOKS: JSON.stringify(readFileSync('docs/runbooks.md', 'utf8')) },
    banner: { js: "import { createRequire as __cr } from 'node:module'; const require = __cr(import.meta.url);" },
  });
  made('handlers');
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
