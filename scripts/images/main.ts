// `npm run docs:images`: docs/images/terminal.svg, a recording of the command line on the embedded AWS.
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { MINISTACK_VERSION } from '../../lib/sandbox/ministack/venv';
import { type RecordedLine, terminalSvg } from './terminal-svg';

const ROOT = path.join(__dirname, '../..');
const IMAGES = path.join(ROOT, 'docs/images');
const SLIPWAY = path.join(ROOT, 'bin/slipway.mjs');
const REGION = 'us-west-2';
const AT = ['--environment', 'demo', '--region', REGION];
/** Nobody is asked, colours are written, and a status is read every second. */
const COMMAND_LINE = { CI: '1', FORCE_COLOR: '1', NODE_NO_WARNINGS: '1', SLIPWAY_POLL_SECONDS: '1' };
/** The instance of the first attempt dies when the script prints this. */
const CRASH_LINE = 'step=26 ';
/** A silence longer than this is cut to it, seconds. */
const LONGEST_SILENCE = 0.9;
/** How long a command is typed and looked at before its first line, seconds. */
const TYPING_SECONDS = 1.2;

/** The script and the run file of the quick start: the recording plays what the reader will type. */
const GUIDE = readFileSync(path.join(ROOT, 'docs/guides/quick-start.md'), 'utf8');

/** A file that the guide writes with a here-document. */
function fileOfGuide(name: string): string {
  const text = new RegExp(`cat > ${name} <<'(\\w+)'\n([\\s\\S]*?)^\\1$`, 'm').exec(GUIDE)?.[2];
  if (text === undefined) throw new Error(`docs:images: docs/guides/quick-start.md must write ${name}`);
  return text;
}

/** Plays commands as a user would type them and keeps what a terminal would show. */
class Recorder {
  readonly lines: RecordedLine[] = [];
  /** Seconds; the first command is there at once. */
  private at = -TYPING_SECONDS;

  constructor(
    private readonly folder: string,
    private readonly env: Record<string, string>,
  ) {}

  /** Runs `slipway` and records command and output; answers the output. A refusal is recorded too: the reader sees it. */
  async play(...args: string[]): Promise<string> {
    this.at += TYPING_SECONDS;
    this.record(`\u001b[32m$\u001b[39m \u001b[1mnpx slipway ${args.join(' ')}\u001b[22m`);
    this.at += TYPING_SECONDS;
    const output = await this.run(args, (line) => this.record(line));
    this.record('');
    return output;
  }

  /** Runs `slipway` outside the recording, unless lines are wanted; answers everything that it wrote. */
  run(args: readonly string[], onLine?: (line: string) => void): Promise<string> {
    const child = spawn(process.execPath, [SLIPWAY, ...args], { cwd: this.folder, env: this.env });
    let output = '';
    let last = Date.now();
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        if (onLine) this.at += Math.min(LONGEST_SILENCE, (Date.now() - last) / 1000);
        last = Date.now();
        for (const line of text.replace(/\n$/, '').split('\n')) onLine?.(line.trimEnd());
      });
    return new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', () => resolve(output));
    });
  }

  private record(text: string): void {
    this.lines.push({ text, atSeconds: Math.round(this.at * 10) / 10 });
  }
}

/** The environment variables of a started sandbox, from the lines that a shell would read. */
const variablesOf = (exports: string): Record<string, string> =>
  Object.fromEntries([...exports.matchAll(/^export (\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]));

/** Plans that the instance of the first attempt dies (docs/sandbox.md, "Faults"). */
async function planCrash(endpoint: string): Promise<void> {
  const fault = {
    kind: 'instance-killed',
    jobName: 'demo-hello-*-a001',
    host: 1,
    logMatches: CRASH_LINE,
    as: 'container',
  };
  const answer = await fetch(`${endpoint}/_slipway/faults`, {
    method: 'POST',
    body: JSON.stringify(fault),
    signal: AbortSignal.timeout(30_000),
  });
  if (!answer.ok) throw new Error(`docs:images: the sandbox must plan a fault, got: ${await answer.text()}`);
}

async function record(recorder: Recorder, folder: string, sageMaker: string): Promise<void> {
  const runFile = path.join(folder, 'hello/run.yaml');
  const text = fileOfGuide('hello/run.yaml');
  await recorder.run(['sandbox', 'deploy', 'environments/demo.yaml', '--raise-quotas']);
  writeFileSync(runFile, text.replace('m5.xlarge', 'm5.xlarg'));
  await recorder.play('validate', 'hello/run.yaml');
  writeFileSync(runFile, text);
  await recorder.play('validate', 'hello/run.yaml');
  await planCrash(sageMaker);
  const output = await recorder.play('launch', 'hello/run.yaml', ...AT, '--yes', '--wait');
  const runId = /hello-\d+/.exec(output)?.[0];
  if (!runId) throw new Error(`docs:images: launch must name the run, got:\n${output}`);
  await recorder.play('report', runId, ...AT);
}

async function main(): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-images-'));
  mkdirSync(path.join(folder, '.local/state/slipway'), { recursive: true });
  // MiniStack's packages are installed once for all sandboxes of this clone.
  symlinkSync(
    path.join(ROOT, '.slipway/venv'),
    path.join(folder, `.local/state/slipway/ministack-${MINISTACK_VERSION}`),
  );
  mkdirSync(path.join(folder, 'hello'));
  writeFileSync(path.join(folder, 'hello/train.py'), fileOfGuide('hello/train.py'));
  cpSync(path.join(ROOT, 'environments'), path.join(folder, 'environments'), { recursive: true });
  const env = { PATH: process.env.PATH ?? '', HOME: folder, ...COMMAND_LINE };
  const starter = new Recorder(folder, env);
  try {
    const variables = variablesOf(await starter.run(['sandbox', 'start', '--region', REGION]));
    const recorder = new Recorder(folder, { ...env, ...variables });
    await record(recorder, folder, variables.AWS_ENDPOINT_URL_SAGEMAKER ?? '');
    const title =
      'slipway: a run file is checked, a run is launched, loses its instance after step 26, resumes from the checkpoint of step 20 and completes';
    writeFileSync(path.join(IMAGES, 'terminal.svg'), terminalSvg(title, recorder.lines));
  } finally {
    await starter.run(['sandbox', 'stop']);
    rmSync(folder, { recursive: true, force: true });
  }
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
