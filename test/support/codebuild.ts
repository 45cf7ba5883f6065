import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';

/** What one build did: the calls of the stub programs in order, and the phase that failed. */
export interface BuildOutcome {
  calls: string[];
  failedPhase?: string;
  stderr: string;
}

const PHASES = ['install', 'pre_build', 'build', 'post_build'];
/** The programs that a build calls; each writes what it was asked into `calls`, and fails where `fails` names its words. */
const STUB = `#!/bin/sh
echo "$(basename "$0") $*" >> "$CALLS"
case "$(basename "$0") $*" in
  *"$FAILS"*) [ -n "$FAILS" ] && { echo "refused" >&2; exit 1; } ;;
esac
[ "$1" = ecr ] && echo token
[ "$1" = login ] && cat > /dev/null
exit 0
`;

/**
 * Runs a buildspec of version 0.2 as CodeBuild documents it: every entry of `commands` in a shell of its own, of which the exported
 * variables and the working directory carry over, and nothing else; the first command that fails ends its phase.
 * https://docs.aws.amazon.com/codebuild/latest/userguide/build-env-ref-cmd.html
 * @param fails words of the call that the stub refuses
 */
export function runBuildSpec(text: string, folder: string, env: Record<string, string>, fails = ''): BuildOutcome {
  const spec = parse(text) as { phases: Record<string, { commands: string[] }> };
  const bin = path.join(folder, 'bin');
  const calls = path.join(folder, 'calls');
  const state = path.join(folder, 'state');
  mkdirSync(bin, { recursive: true });
  writeFileSync(calls, '');
  writeFileSync(state, `cd '${folder}'\n`);
  for (const program of ['aws', 'docker']) {
    writeFileSync(path.join(bin, program), STUB);
    chmodSync(path.join(bin, program), 0o755);
  }
  const outcome: BuildOutcome = { calls: [], stderr: '' };
  for (const phase of PHASES.filter((name) => spec.phases[name])) {
    for (const command of spec.phases[phase]?.commands ?? []) {
      const keep = `status=$?\n{ export -p; echo "cd '$(pwd)'"; } > '${state}'\nexit $status`;
      const script = `. '${state}'\n${command}\n${keep}`;
      // The shell of CodeBuild's standard images runs a command to its last line: what fails before it counts only under set -e.
      const { status, stderr } = spawnSync('sh', ['-c', script], {
        encoding: 'utf8',
        env: { PATH: `${bin}:${process.env.PATH}`, CALLS: calls, FAILS: fails, ...env },
      });
      outcome.stderr += stderr;
      if (status !== 0) outcome.failedPhase ??= phase;
      if (status !== 0) break;
    }
    if (outcome.failedPhase) break;
  }
  if (existsSync(calls)) outcome.calls = readFileSync(calls, 'utf8').split('\n').filter(Boolean);
  return outcome;
}
