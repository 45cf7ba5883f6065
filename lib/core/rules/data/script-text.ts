import type { CodeFolder } from '../../config/code-source';
import { orList } from '../../config/issue';
import { type Finding, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';

/** `a, b, c and 12 more`. */
export function someOf(names: readonly string[]): string {
  const rest = names.length - 3;
  return rest > 0 ? `${names.slice(0, 3).join(', ')} and ${rest} more` : orList(names, 'and');
}

export const plainName = (name: string): string =>
  name
    .split('/')
    .filter((part) => part !== '.' && part !== '')
    .join('/');

const CONVERT = "convert it with dos2unix or sed -i 's/\\r$//'";
const UNMARK = "remove it with sed -i '1s/^\\xEF\\xBB\\xBF//'";

/** Findings about what Windows programs write into shell scripts. The driver refuses the same in the entry point. */
export function scriptText({ code }: RunSpec, { files }: CodeFolder): Finding[] {
  const entry = plainName(code.entryPoint);
  const script = entry.endsWith('.sh') ? files.find(({ name }) => name === entry) : undefined;
  const others = files.filter(({ name }) => name !== entry);
  return [
    ...entryPoint(`\\r\\n on line ${script?.windowsLine} of ${code.entryPoint}`, script?.windowsLine, LINES),
    ...entryPoint(`one before ${script?.markedWord} in ${code.entryPoint}`, script?.markedWord, MARK),
    ...otherScripts(
      '\\r\\n',
      others.filter(({ windowsLine }) => windowsLine !== undefined),
      LINES,
    ),
    ...otherScripts(
      'one',
      others.filter(({ markedWord }) => markedWord !== undefined),
      MARK,
    ),
  ];
}

const LINES = { must: 'must have Unix line endings', fix: CONVERT };
const MARK = { must: 'must have no byte order mark', fix: UNMARK };
type Text = typeof LINES;

const entryPoint = (got: string, fact: unknown, { must, fix }: Text): Finding[] =>
  when(fact !== undefined, 'code.entryPoint', { must, got, fix });

const otherScripts = (got: string, files: CodeFolder['files'], { must, fix }: Text): Finding[] =>
  when(files.length > 0, 'code.source', {
    level: 'warning' as const,
    must: `${must} in scripts`,
    got: `${got} in ${someOf(files.map(({ name }) => name))}`,
    fix,
  });
