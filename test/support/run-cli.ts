import { main } from '../../lib/cli/main';

export interface CliResult {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs the command line in this process. */
export async function runCli(...args: string[]): Promise<CliResult> {
  const out: string[] = [];
  const err: string[] = [];
  const code = await main(['node', 'slipway', ...args], { out: (t) => out.push(t), err: (t) => err.push(t) });
  return { code, stdout: out.join('\n'), stderr: err.join('\n') };
}
