// The packed package and a project that `slipway init` makes from it in an empty folder.
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { type Outcome, ROOT } from '../../e2e/support/sandbox';

const run = promisify(execFile);

/** Packs the build of this working tree into a folder; answers the tarball. */
export function packedPackage(folder: string): string {
  return pack(ROOT, folder);
}

/** Packs a folder that holds a package. */
export function pack(from: string, folder: string): string {
  const words = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const [packed] = JSON.parse(execFileSync('npm', words, { cwd: from, encoding: 'utf8' })) as { filename: string }[];
  return path.join(folder, packed?.filename ?? '');
}

/** The folder of a CDK app of one's own. */
export class PackedProject {
  private constructor(readonly folder: string) {
    mkdirSync(folder);
  }

  /**
   * `slipway init` from the tarball, and `npm ci`.
   * @param options of `slipway init`
   */
  static async make(folder: string, tarball: string, ...options: string[]): Promise<PackedProject> {
    const project = new PackedProject(folder);
    const npx = ['--yes', '--prefer-offline', '--package', tarball];
    await project.call('npx', ...npx, 'slipway', 'init', '.', ...options, '--yes');
    await project.call('npm', 'ci', '--prefer-offline', '--no-audit', '--no-fund');
    // MiniStack is fetched once for all tests of this working tree.
    mkdirSync(path.join(folder, '.slipway'), { recursive: true });
    mkdirSync(path.join(ROOT, '.slipway/venv'), { recursive: true });
    symlinkSync(path.join(ROOT, '.slipway/venv'), path.join(folder, '.slipway/venv'));
    return project;
  }

  /** Runs a program as a new user does: no credentials, no Region, no configuration of this machine but npm's cache. Answers stdout. */
  async call(program: string, ...args: string[]): Promise<string> {
    return (await run(program, args, this.execution({}))).stdout;
  }

  /** The same with variables on top, whatever the exit code. */
  async tryCall(env: Record<string, string>, program: string, ...args: string[]): Promise<Outcome> {
    try {
      return { code: 0, ...(await run(program, args, this.execution(env))) };
    } catch (error) {
      const failed = error as { code?: number; stdout?: string; stderr?: string };
      return { code: failed.code ?? 1, stdout: failed.stdout ?? '', stderr: failed.stderr ?? '' };
    }
  }

  private execution(more: Record<string, string>) {
    const { AWS_PROFILE: _, AWS_REGION: __, AWS_DEFAULT_REGION: ___, ...env } = process.env;
    const none = {
      AWS_CONFIG_FILE: '/dev/null',
      AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
      AWS_EC2_METADATA_DISABLED: 'true',
    };
    return { cwd: this.folder, env: { ...env, ...none, CI: '', ...more }, maxBuffer: 1 << 26 };
  }
}
