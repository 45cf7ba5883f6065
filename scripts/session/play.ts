import { spawn } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { MINISTACK_VERSION } from '../../lib/sandbox/ministack/venv';

const ROOT = path.join(__dirname, '../..');
const EXAMPLE = path.join(ROOT, 'docs/examples/sdk-v3');
const REGION = 'us-west-2';

/** One command as it was typed, and all that it wrote. */
export interface Played {
  command: string;
  output: string;
  code: number | null;
}

/** What the stranger adds to the imported file: where the loss stands in what the script prints, and a limit. */
const ADDED = `progress: { stepRegex: "step=(\\\\d+)", lossRegex: "loss=([0-9.]+)" }
`;
const STOP = '"loss > best * 1.5 after 20 steps"';

/** A shell in the stranger's folder, with the variables of the embedded AWS. */
export class Shell {
  readonly played: Played[] = [];

  constructor(
    readonly folder: string,
    private readonly env: Record<string, string>,
  ) {}

  /** Runs a line of bash and keeps it; answers what it wrote on stdout and stderr. */
  async type(command: string): Promise<string> {
    const found = await this.run(command);
    this.played.push({ command, ...found });
    return found.output;
  }

  run(command: string): Promise<{ output: string; code: number | null }> {
    const child = spawn('bash', ['-c', command], { cwd: this.folder, env: this.env });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    return new Promise((resolve, reject) => {
      child.once('error', reject);
      // The folder is another one each time.
      child.once('close', (code) => resolve({ output: output.replaceAll(`${this.folder}/`, ''), code }));
    });
  }
}

/**
 * Plays a session on an embedded AWS of its own: the request of an SDK v3 script is imported, its file launched as a sweep whose losers are
 * stopped, and the runs are compared and reported.
 * @param after what else is done there, which is not part of the session. @default - nothing
 */
export async function playSession(after: (shell: Shell) => Promise<void> = async () => undefined): Promise<Played[]> {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-session-'));
  mkdirSync(path.join(folder, '.local/state/slipway'), { recursive: true });
  // MiniStack's packages are installed once for all sandboxes of this clone.
  symlinkSync(
    path.join(ROOT, '.slipway/venv'),
    path.join(folder, `.local/state/slipway/ministack-${MINISTACK_VERSION}`),
  );
  for (const name of ['src', 'train_v3.py', 'request.json'])
    cpSync(path.join(EXAMPLE, name), path.join(folder, name), { recursive: true });
  mkdirSync(path.join(folder, 'environments'));
  writeFileSync(path.join(folder, 'environments/demo.yaml'), environmentText());
  mkdirSync(path.join(folder, 'bin'));
  writeFileSync(
    path.join(folder, 'bin/slipway'),
    `#!/bin/sh\nexec "${process.execPath}" "${ROOT}/bin/slipway.mjs" "$@"\n`,
    { mode: 0o755 },
  );
  const env = {
    PATH: `${folder}/bin:${process.env.PATH ?? ''}`,
    HOME: folder,
    ...{ CI: '1', NO_COLOR: '1', NODE_NO_WARNINGS: '1', SLIPWAY_POLL_SECONDS: '1', COLUMNS: '120' },
  };
  const outside = new Shell(folder, env);
  try {
    const { output } = await outside.run(`slipway sandbox start --region ${REGION}`);
    const variables = Object.fromEntries(
      [...output.matchAll(/^export (\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]),
    );
    const shell = new Shell(folder, { ...env, ...variables, SLIPWAY_ENVIRONMENT: 'demo', AWS_REGION: REGION });
    await shell.run('slipway sandbox deploy environments/demo.yaml --raise-quotas');
    await typeSession(shell, folder);
    await after(shell);
    return shell.played;
  } finally {
    await outside.run('slipway sandbox stop');
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The environment of the demo, in which the notebook may also plan a run on GPUs. */
const environmentText = (): string =>
  readFileSync(path.join(ROOT, 'environments/demo.yaml'), 'utf8')
    .replace('"ml.m5.*"]', '"ml.m5.*", "ml.p5.*"]')
    .replace('maxCostPerRunUsd: 50', 'maxCostPerRunUsd: 500');

async function typeSession(shell: Shell, folder: string): Promise<void> {
  await shell.type('slipway import request.json > run.yaml');
  await shell.type('grep -v "^#" run.yaml');
  appendFileSync(path.join(folder, 'run.yaml'), ADDED);
  await shell.type('tail -1 run.yaml   # added by hand: where the loss stands in what the script prints');
  await shell.type('slipway validate run.yaml --set code.entryPoint=train.py --set limits.maxCostUsd=1');
  const options = '--set code.entryPoint=train.py --set limits.maxCostUsd=1 --set distribution.launcher=script';
  await shell.type(
    `slipway launch run.yaml --environment demo --yes --wait ${options} \\\n    --matrix code.arguments.lr=0.02,0.1,0.6 --stop-when ${STOP}`,
  );
  const { output } = await shell.run('slipway list --json');
  const { runs = [] } = JSON.parse(output || '{}') as { runs?: { runId: string }[] };
  const ids = runs.map(({ runId }) => runId).sort();
  await shell.type('slipway list');
  await shell.type(`slipway report ${ids.join(' ')}`);
  await shell.type(`slipway report ${ids[0]} ${ids[2]} --diff`);
  await shell.type(`slipway report ${ids[2]} --html report.html`);
  await shell.type(`slipway status ${ids[2]} --lineage`);
}
