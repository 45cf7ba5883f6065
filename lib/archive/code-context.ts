import { existsSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { CODE_IN_IMAGE } from '../spec/code-source';
import type { RuleContext } from '../spec/rule';
import type { RunSpec } from '../spec/run-spec';

/** Local facts about the run's code, for the rules. */
export function codeContext(
  run: RunSpec,
  runFile: string,
): Pick<RuleContext, 'codeExists' | 'windowsLine' | 'codeProblem' | 'codeFix'> {
  const { source, builtin } = run.code;
  if (builtin || source === CODE_IN_IMAGE || source.startsWith('s3://')) return {};
  const folder = path.resolve(path.dirname(runFile), source);
  if (!existsSync(folder)) return { codeProblem: 'must be a folder that exists, builtin, or an s3:// archive' };
  if (!statSync(folder).isDirectory()) return { codeProblem: 'must be a folder, not a file' };
  const { root, isGit } = repositoryOf(runFile);
  if (path.relative(root, folder).startsWith('..'))
    return {
      codeProblem: isGit
        ? `must be in the run file's Git repository (${root})`
        : `must be in the run file's folder (${root}), which is in no Git repository`,
      codeFix: isGit ? undefined : 'run git init in the folder that holds both, or move the run file above the code',
    };
  return {
    codeExists: (name) => isFileInside(folder, name),
    windowsLine: (name) => (isFileInside(folder, name) ? windowsLine(path.resolve(folder, name)) : undefined),
  };
}

/** As the driver does before it starts the script: an installer may have binary data behind its script. */
function windowsLine(file: string): number | undefined {
  const [script = ''] = readFileSync(file, 'latin1').split('\0');
  const index = script.split('\n').findIndex((line) => line.endsWith('\r'));
  return index < 0 ? undefined : index + 1;
}

function isFileInside(folder: string, name: string): boolean {
  const target = path.resolve(folder, name);
  if (path.relative(folder, target).startsWith('..')) return false;
  return existsSync(target) && statSync(target).isFile();
}

/** The nearest folder with .git that contains the run file, otherwise the run file's folder. */
function repositoryOf(runFile: string): { root: string; isGit: boolean } {
  const start = path.dirname(path.resolve(runFile));
  for (let folder = start; ; folder = path.dirname(folder)) {
    if (existsSync(path.join(folder, '.git'))) return { root: folder, isGit: true };
    if (folder === path.dirname(folder)) return { root: start, isGit: false };
  }
}
