// What cdk.json runs: the CDK app, built first where a fresh clone has no build yet.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');
const app = path.join(root, 'dist', 'bin', 'app.js');
// The build prints to stderr: the CDK CLI reads stdout of `cdk synth`.
if (!existsSync(app)) {
  console.error('slipway: no build yet; running npm run build');
  execFileSync(process.execPath, [path.join(root, 'scripts', 'build.mjs')], { stdio: ['ignore', 2, 2] });
}
createRequire(import.meta.url)(app);
