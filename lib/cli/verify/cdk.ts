import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { UsageError } from '../exit';
import type { RunCdk } from './account';

/**
 * The CDK CLI of the app in this folder.
 * @throws UsageError when there is no app, or no CLI
 */
function cdkOf(folder: string): string {
  if (!existsSync(path.join(folder, 'cdk.json')))
    throw new UsageError(
      `--level deploy: must run in the folder of the CDK app, got ${folder} without cdk.json; change into it, or use --level read`,
    );
  try {
    const manifest = createRequire(path.join(folder, 'package.json')).resolve('aws-cdk/package.json');
    return path.join(path.dirname(manifest), 'bin/cdk');
  } catch {
    throw new UsageError('--level deploy: must have the package aws-cdk, got none; run npm ci');
  }
}

/** Runs `cdk deploy` and `cdk destroy` of an environment file, with the app of the working folder. */
export function cdkRunner(stack: string, region: string): { run: RunCdk; end(): void } {
  const cdk = cdkOf(process.cwd());
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-verify-'));
  const output = path.join(folder, 'cdk.out');
  const call = (args: readonly string[]) =>
    new Promise<{ code: number; output: string }>((done, fail) => {
      // A separate process group: Ctrl-C must not interrupt a deploy, because an interrupted deploy could not be destroyed.
      const child = spawn(process.execPath, [cdk, ...args], {
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, AWS_REGION: region, NO_COLOR: '1' },
      });
      let text = '';
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (data: Buffer) => {
          text += data.toString();
        });
      child.on('error', fail);
      child.on('close', (code) => done({ code: code ?? 1, output: text }));
    });
  return {
    run: async (verb, text) => {
      const file = path.join(folder, 'verify.yaml');
      writeFileSync(file, text);
      const common = [stack, '-c', `environment=${file}`, '-c', 'checks=off', '--output', output];
      if (verb === 'destroy') return call(['destroy', ...common, '--force']);
      return call(['deploy', ...common, '--require-approval', 'never', '--method=direct']);
    },
    end: () => rmSync(folder, { recursive: true, force: true }),
  };
}
