// `npm run pack -- FOLDER`: the product as npm installs it, and the wheel of the Python client, as files for the vendor folder of a project.
// Needs Python 3.10 or newer with pip, which fetches the build backend of the wheel. Prints one JSON document: `{package, wheel}`.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';

const folder = path.resolve(process.argv[2] ?? 'dist/vendor');
process.chdir(path.resolve(import.meta.dirname, '..'));
mkdirSync(folder, { recursive: true });
// Nobody sees a file that is half written, also when two pack at the same time.
const fresh = mkdtempSync(path.join(folder, '.pack-'));
const toStderr = { stdio: ['ignore', 2, 2] };
// Ctrl-C ends the program that runs; what is half made is removed below.
process.on('SIGINT', () => {});
const print = (text) => process.stderr.write(`slipway: ${text}\n`);

try {
  print('building the package');
  execFileSync(process.execPath, ['scripts/build.mjs'], toStderr);
  execFileSync('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', fresh], toStderr);
  print('building the wheel of the Python client');
  rmSync('clients/python/build', { recursive: true, force: true });
  const wheel = ['-m', 'pip', 'wheel', '--quiet', '--disable-pip-version-check', '--no-deps', '--wheel-dir', fresh];
  execFileSync('python3', [...wheel, 'clients/python'], toStderr);
  const names = readdirSync(fresh);
  for (const name of names) renameSync(path.join(fresh, name), path.join(folder, name));
  const ending = (extension) =>
    path.join(
      folder,
      names.find((name) => name.endsWith(extension)),
    );
  process.stdout.write(`${JSON.stringify({ package: ending('.tgz'), wheel: ending('.whl') })}\n`);
} catch (error) {
  print(`the project could not be packed: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(fresh, { recursive: true, force: true });
}
