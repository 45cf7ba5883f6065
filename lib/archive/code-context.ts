import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import type { RuleContext } from '../spec/rule';
import type { RunSpec } from '../spec/run-spec';

/** Local facts about the run's code, for the rules. */
export function codeContext(run: RunSpec, runFile: string): Pick<RuleContext, 'codeExists' | 'codeProblem'> {
  const { source, builtin } = run.code;
  if (builtin || source.startsWith('s3://')) return {};
  const folder = path.resolve(path.dirname(runFile), source);
  if (!existsSync(folder)) return { codeProblem: 'must be a folder that exists, builtin, or an s3:// archive' };
  if (!statSync(folder).isDirectory()) return { codeProblem: 'must be a folder, not a file' };
  const root = repositoryOf(runFile);
  if (path.relative(root, folder).startsWith('..'))
    return { codeProblem: `must lie in the run file's repository (${root})` };
  return { codeExists: (name) => isFileInside(folder, name) };
}

function isFileInside(folder: string, name: string): boolean {
  const target = path.resolve(folder, name);
  if (path.relative(folder, target).startsWith('..')) return false;
  return existsSync(target) && statSync(target).isFile();
}

/** The folder with .git above the run file, else the run file's own folder. */
function repositoryOf(runFile: string): string {
  const start = path.dirname(path.resolve(runFile));
  for (let folder = start; ; folder = path.dirname(folder)) {
    if (existsSync(path.join(folder, '.git'))) return folder;
    if (folder === path.dirname(folder)) return start;
  }
}
