import { serveSandbox } from '../../../lib/sandbox/daemon';

/** Runs a sandbox in its own process, for tests: `serve.ts STATE_DIR VENV_DIR`. */
const [, , stateDir = '', venvDir = ''] = process.argv;
serveSandbox({ stateDir, venvDir, time: { startingSeconds: 0, downloadingSeconds: 0 } }).catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
});
