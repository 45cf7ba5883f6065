// Builds what `npm run build` promises: the CDK app and the library as CommonJS (tsc), the CLI as one lazily loaded
// ESM bundle, one bundle per Lambda handler (target node20, SDK inside, so that synth bundles nothing), and the script of the Python client.
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { build } from 'esbuild';

const root = path.resolve(import.meta.dirname, '..');
process.chdir(root);
const only = process.argv.slice(2);
const wants = (part) => only.length === 0 || only.includes(part);

if (wants('lib')) {
  rmSync('dist/lib', { recursive: true, force: true });
  execFileSync('node_modules/.bin/tsc', ['-p', 'tsconfig.build.json'], { stdio: 'inherit' });
}

if (wants('cli')) {
  rmSync('dist/cli', { recursive: true, force: true });
  await build({
    entryPoints: { slipway: 'bin/slipway.ts', 'histories-worker': 'lib/cli/histories-worker.ts' },
    outdir: 'dist/cli',
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    minifySyntax: true,
    logLevel: 'warning',
    banner: {
      js: "#!/usr/bin/env node\nimport { createRequire as __cr } from 'node:module'; const require = __cr(import.meta.url); const __dirname = import.meta.dirname;",
    },
  });
  chmodSync('dist/cli/slipway.mjs', 0o755);
}

if (wants('handlers') && existsSync('lib/handlers')) {
  const names = readdirSync('lib/handlers', { withFileTypes: true })
    .filter((d) => d.isDirectory() && existsSync(`lib/handlers/${d.name}/index.ts`))
    .map((d) => d.name);
  await Promise.all(
    names.map((name) =>
      build({
        entryPoints: { index: `lib/handlers/${name}/index.ts` },
        outdir: `dist/handlers/${name}`,
        bundle: true,
        format: 'cjs',
        platform: 'node',
        target: 'node20',
        minify: true,
        keepNames: true,
        legalComments: 'none',
        logLevel: 'warning',
      }),
    ),
  );
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
}
