import { IMAGE_PACKAGES, STANDARD_MODULES } from '../../catalog/python-modules';
import type { CodeFolder } from '../../config/code-source';
import { orList } from '../../config/issue';
import { type Finding, type Rule, type RuleContext, type RuleKind, rule, when } from '../../config/rule';
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
const RECODE = 'convert it with iconv -f UTF-16 -t UTF-8';
const UNMARK = "remove it with sed -i '1s/^\\xEF\\xBB\\xBF//'";

/** Larger code is uploaded and read by every host at each start; it is usually data. */
const LARGE_MIB = 50;

const has = ({ files }: CodeFolder, wanted: string): boolean => files.some(({ name }) => name === plainName(wanted));

const folderRule = (id: string, kind: RuleKind, find: (run: RunSpec, folder: CodeFolder) => Finding[]) =>
  rule(id, kind, (run, { codeFolder }) => (codeFolder === undefined ? [] : find(run, codeFolder)));

/** What each contract can start: the driver runs any other name as a module, the toolkit as a command. */
function entryPointExists({ code: { entryPoint }, distribution }: RunSpec, folder: CodeFolder): boolean {
  if (/\.(py|sh)$/.test(entryPoint) || distribution.contract === 'toolkit') return has(folder, entryPoint);
  const path = entryPoint.replaceAll('.', '/');
  const isModule = /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/.test(entryPoint);
  return isModule && (has(folder, `${path}.py`) || has(folder, `${path}/__main__.py`));
}

/** Files that hold credentials by convention, and templates that do not. */
const CREDENTIALS =
  /(^|\/)(\.env(\.(?!example$|sample$|template$|dist$)[^/]+)?|\.netrc|\.pgpass|\.git-credentials|\.pypirc|kaggle\.json|\.aws\/credentials)$/;

/** Folders that Python searches before the packages of the image: the root, and that of the script. */
const searched = ({ code }: RunSpec): string[] => {
  const [, inside = ''] = /^(.*\/)[^/]+\.py$/.exec(plainName(code.entryPoint)) ?? [];
  return [...new Set(['', inside])];
};

/** The entry point, where the code folder has it. */
export const entryFile = ({ code }: RunSpec, folder: CodeFolder | undefined) =>
  folder?.files.find(({ name }) => name === plainName(code.entryPoint));

/** Requirements that the toolkit installs because the file is there. */
export const toolkitRequirements = (run: RunSpec, { codeFolder }: RuleContext): string | undefined =>
  run.distribution.contract === 'toolkit' && codeFolder && has(codeFolder, 'requirements.txt')
    ? 'requirements.txt'
    : undefined;

export const CODE_FOLDER_RULES: readonly Rule[] = [
  rule('code/folder', 'error, local', (run, { codeFolder, codeProblem, codeFix }) => {
    const { source, requirements } = run.code;
    if (codeProblem)
      return { path: 'code.source', must: codeProblem, fix: codeFix ?? 'use a folder relative to the run file' };
    if (!codeFolder) return [];
    return [
      ...codeFolder.problems.map((problem) => ({ path: 'code.source', ...problem })),
      // A file that cannot be read is named above.
      ...when(codeFolder.problems.length === 0 && !entryPointExists(run, codeFolder), 'code.entryPoint', {
        must: `must exist inside ${source} as a .py file, a .sh file or a module`,
        fix: 'use a file of that folder',
      }),
      ...when(requirements !== undefined && !has(codeFolder, requirements), 'code.requirements', {
        must: `must exist inside ${source}`,
        fix: 'use a file of that folder',
      }),
    ];
  }),
  /** Findings about what Windows programs write into shell scripts. The driver refuses the same in the entry point. */
  folderRule('code/line-endings', 'error, local', ({ code }, { files }: CodeFolder) => {
    const entry = plainName(code.entryPoint);
    const script = files.find(({ name }) => name === entry);
    const others = files.filter(({ name }) => name !== entry);
    const lines = { must: 'must have Unix line endings', fix: CONVERT };
    const mark = { must: 'must have no byte order mark', fix: UNMARK };
    const encoding = { must: 'must be in UTF-8', fix: RECODE };
    const kinds = [
      { fact: 'windowsLine', what: '\\r\\n', at: `on line ${script?.windowsLine} of ${code.entryPoint}`, text: lines },
      { fact: 'markedWord', what: 'one', at: `before ${script?.markedWord} in ${code.entryPoint}`, text: mark },
      { fact: 'isUtf16', what: 'UTF-16', at: `in ${code.entryPoint}`, text: encoding },
    ] as const;
    return [
      ...kinds.flatMap(({ fact, what, at, text: { must, fix } }) =>
        when(script?.[fact] !== undefined, 'code.entryPoint', { must, got: `${what} ${at}`, fix }),
      ),
      ...kinds.flatMap(({ fact, what, text: { must, fix } }) => {
        const names = others.filter((file) => file[fact] !== undefined).map(({ name }) => name);
        const got = `${what} in ${someOf(names)}`;
        return when(names.length > 0, 'code.source', { level: 'warning', must: `${must} in scripts`, got, fix });
      }),
    ];
  }),
  folderRule('code/outside-links', 'warning, local, may acknowledge', (_, { outside = [] }) =>
    when(outside.length > 0, 'code.source', {
      must: 'must contain no link that leaves its repository, because it is left out',
      got: someOf(outside),
      fix: 'put a copy in its place, name data under data, or acknowledge it',
    }),
  ),
  folderRule('code/one-host-launcher', 'warning, may acknowledge', (run, folder) => {
    const { code, compute, distribution } = run;
    const launcher = entryFile(run, folder)?.oneHostLauncher;
    const isAlone =
      compute.instanceCount === 1 || distribution.launcher !== 'script' || !code.entryPoint.endsWith('.sh');
    return when(!isAlone && launcher !== undefined, 'code.entryPoint', {
      must: `must tell its launcher how many hosts there are and which one it is on, because ${compute.instanceCount} hosts run the script, and would not train together`,
      got: `${launcher} in ${code.entryPoint}`,
      fix: 'pass them as runs/scripts/trainers/accelerate.sh does (deepspeed: with --no_ssh), use distribution.launcher torchrun with the Python script, or acknowledge it',
    });
  }),
  folderRule('code/size', 'warning, local, may acknowledge', (_, { files }) => {
    const mib = (bytes: number) => Math.ceil(bytes / 2 ** 20);
    const total = mib(files.reduce((sum, { bytes }) => sum + bytes, 0));
    const large = files.filter(({ bytes }) => bytes >= 2 ** 20).sort((a, b) => b.bytes - a.bytes);
    const parts = large.slice(0, 3).map(({ name, bytes }) => `${name}: ${mib(bytes)} MiB`);
    return when(total > LARGE_MIB, 'code.source', {
      must: `must be code, at most ${LARGE_MIB} MiB of it, because each host downloads it at every start`,
      got: `${total} MiB in ${files.length} files${parts.length > 0 ? ` (${parts.join(', ')})` : ''}`,
      fix: 'put data and weights into S3 and name them under data',
    });
  }),
  folderRule('code/secrets', 'error, local, may acknowledge', (_, { files }) => {
    const fix = 'move it out of the folder, and name it under secrets if the code needs it, or acknowledge it';
    const named = files.filter(
      ({ name, secret, bytes }) => secret === undefined && bytes > 0 && CREDENTIALS.test(name),
    );
    const certain = files.flatMap(({ name, secret }) => (secret === undefined ? [] : [`${name} (${secret})`]));
    return [
      ...when(certain.length > 0, 'code.source', {
        must: 'must contain no secret: the archive is kept in S3, where everyone who may read the code of the team reads it',
        got: someOf(certain),
        fix,
      }),
      ...when(named.length > 0, 'code.source', {
        level: 'warning' as const,
        must: 'must contain no file that usually holds secrets',
        got: someOf(named.map(({ name }) => name)),
        fix,
      }),
    ];
  }),
  folderRule('code/shadowed-packages', 'warning, local, may acknowledge', (run, { files }) => {
    const folders = searched(run);
    const found = files.flatMap(({ name }) => {
      const [, at = '', module = ''] = /^(.*\/)?([^/]+)\.py$/.exec(name.replace(/\/__init__\.py$/, '.py')) ?? [];
      return folders.includes(at) && (STANDARD_MODULES.has(module) || IMAGE_PACKAGES.has(module)) ? [name] : [];
    });
    return when(found.length > 0, 'code.source', {
      must: 'must contain no module with the name of a package of Python or of the image: all packages import it in its place',
      got: someOf(found),
      fix: 'rename it, or acknowledge it',
    });
  }),
  folderRule('code/not-installed', 'warning, may acknowledge', (run, given) => {
    if (run.distribution.contract !== 'entrypoint') return [];
    const isPackage = has(given, 'setup.py') || has(given, 'pyproject.toml');
    const below = given.files.find(({ name }) => /^src\/[^/]+\/__init__\.py$/.test(name));
    const isNotFound =
      isPackage && below !== undefined && !searched(run).includes('src/') && run.code.requirements === undefined;
    return [
      ...when(run.code.requirements === undefined && has(given, 'requirements.txt'), 'code.requirements', {
        must: 'must name requirements.txt, which is not installed otherwise',
        got: 'nothing',
        fix: 'write requirements: requirements.txt, or acknowledge it',
      }),
      ...when(isNotFound, 'code.source', {
        must: 'must be importable as it is: the folder is not installed as a package, and Python does not search src/',
        got: below?.name,
        fix: 'use src/ as source, or a requirements file with a line that contains only a dot',
      }),
    ];
  }),
  folderRule('code/toolkit-package', 'error', (run, given) => {
    const { code, distribution } = run;
    if (distribution.contract !== 'toolkit' || !has(given, 'setup.py') || code.entryPoint.endsWith('.sh')) return [];
    const isNested = code.entryPoint.includes('/');
    return when(distribution.launcher === 'torchrun' || isNested, 'code.source', {
      must:
        distribution.launcher === 'torchrun'
          ? 'must contain no setup.py under the toolkit contract with torchrun, which starts no package'
          : 'must contain no setup.py under the toolkit contract, which then starts the entry point as a module and finds none with a slash',
      got: `setup.py, entry point ${code.entryPoint}`,
      fix: 'use the folder of the entry point as source, or contract entrypoint',
    });
  }),
];
