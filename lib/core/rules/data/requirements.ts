import { channelFolder } from '../../config/formats/places';
import { type Rule, type RuleContext, rule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { compareVersions, pytorchOfImage } from '../../distribution/image-version';
import { plainName, someOf, toolkitRequirements } from './code-folder';

/** Minor version of torchvision that belongs to PyTorch 2.0; later ones follow it. https://github.com/pytorch/vision#installation */
const TORCHVISION_OF_2_0 = 15;

/** One requirement: the package, in the spelling of indexes, and its version clauses. */
interface Requirement {
  line: string;
  name: string;
  clauses: readonly { operator: string; version: string }[];
  /** Whether it is fetched from an address instead of an index. */
  isAddress: boolean;
}

/** A line that names a package; undefined for options. */
export function requirementOf(line: string): Requirement | undefined {
  const [, name = '', rest = ''] = /^([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*([^;]*)/.exec(line) ?? [];
  if (name === '' || /^\w+:\/\//.test(line) || /^git\+/.test(line)) return undefined;
  const clauses = rest.split(',').flatMap((clause) => {
    const [, operator = '', version = ''] = /^\s*\(?(===?|~=|!=|<=?|>=?)\s*v?(\d+(?:\.\d+)*)/.exec(clause) ?? [];
    return operator === '' ? [] : [{ operator, version }];
  });
  return {
    line,
    name: name.toLowerCase().replace(/[._-]+/g, '-'),
    clauses,
    isAddress: rest.trimStart().startsWith('@'),
  };
}

/** Whether an installed version satisfies a clause. Only the parts that are known of it are compared. */
function satisfies(installed: string, { operator, version }: Requirement['clauses'][number]): boolean {
  const [parts, known] = [version.split('.'), installed.split('.')];
  const order = compareVersions(installed, parts.slice(0, known.length).join('.'));
  const isOpen = order === 0 && parts.length > known.length;
  const satisfied: Readonly<Record<string, boolean>> = {
    '<': order < 0 || isOpen,
    '<=': order <= 0,
    '>': order > 0 || isOpen,
    '>=': order >= 0,
    '!=': true,
    '~=': order >= 0 && parts.slice(0, -1).every((part, i) => part === (known[i] ?? part)),
  };
  return satisfied[operator] ?? order === 0;
}

/** Whether pip replaces PyTorch, or the NCCL that it loads, for a requirement. */
function replacesPytorch(given: Requirement, pytorch: string): boolean {
  const { name, clauses, isAddress } = given;
  if (/^nvidia-nccl-cu\d+$/.test(name)) return clauses.length > 0 || isAddress;
  const [major = '', minor = ''] = pytorch.split('.');
  const installed = name === 'torchvision' ? `0.${Number(minor) + TORCHVISION_OF_2_0}` : pytorch;
  if (!['torch', 'torchaudio', 'torchvision'].includes(name) || (name === 'torchvision' && major !== '2')) return false;
  return isAddress || !clauses.every((clause) => satisfies(installed, clause));
}

/** The lines of the file that is installed: of code.requirements, or the one that the toolkit finds itself. */
function installed(run: RunSpec, context: RuleContext): readonly string[] {
  const wanted = run.code.requirements ?? toolkitRequirements(run, context);
  if (wanted === undefined) return [];
  return context.codeFolder?.files.find(({ name }) => name === plainName(wanted))?.requirements ?? [];
}

/** Lines that send pip to another place than the index. */
const ELSEWHERE =
  /^(?:-e\s+|--editable[\s=]+)?(?:git|hg|svn|bzr)\+|^(?:-e\s+)?https?:\/\/|@\s*(?:git\+|https?:\/\/)|^(?:-i|--index-url|--extra-index-url|-f|--find-links)\b[\s=]*https?:/;

/** A file or folder that a line names in place of a package of an index. */
interface LocalPlace {
  place: string;
  /** Relative to the folder of the requirements file, and not to the one in which pip runs. */
  isBesideFile: boolean;
}

/** https://pip.pypa.io/en/stable/reference/requirements-file-format/, 2026-11-30 */
function localPlaceIn(line: string): LocalPlace | undefined {
  const [, option = '', rest = ''] =
    /^(-[a-z]|--[a-z-]+)?[\s=]*(.*)$/.exec(line.replace(/["']/g, '').split(/\s;/, 1)[0]?.trimEnd() ?? '') ?? [];
  const isBesideFile = /^(-r|--requirement|-c|--constraint)$/.test(option);
  const isOption = isBesideFile || /^(-e|--editable|-f|--find-links)$/.test(option);
  if (option !== '' && !isOption) return undefined;
  const place = rest.replace(/^[A-Za-z0-9][\w.-]*(\[[^\]]*\])?\s*@\s*/, '').replace(/\[[\w,\s.-]*\]$/, '');
  if (/^[a-z]{2,}(\+[a-z]+)?:/i.test(place) && !place.startsWith('file:')) return undefined;
  const isPath = isOption || /^(file:|\.{0,2}\/|\.$)|\.(whl|zip|tar\.gz)$/.test(place);
  return isPath && place !== '' ? { place: place.replace(/^file:(\/\/(localhost)?)?/, ''), isBesideFile } : undefined;
}

/** Lines with a file that is not in the code folder: certainly, or unless the image has it. */
function missingFiles(run: RunSpec, context: RuleContext): { inFolder: string[]; absolute: string[] } {
  const folders = plainName(run.code.requirements ?? '')
    .split('/')
    .slice(0, -1);
  const isThere = (path: string) => {
    const name = plainName(path);
    const files = context.codeFolder?.files ?? [];
    return name === '' || files.some((file) => file.name === name || file.name.startsWith(`${name}/`));
  };
  const found = installed(run, context).flatMap((line) => {
    const { place, isBesideFile } = localPlaceIn(line) ?? {};
    // What a channel contains is known only in the job.
    if (place === undefined || place.startsWith(channelFolder(''))) return [];
    const isAbsolute = place.startsWith('/');
    return isAbsolute || !isThere([...(isBesideFile ? folders : []), place].join('/')) ? [{ line, isAbsolute }] : [];
  });
  const linesOf = (wanted: boolean) => found.flatMap(({ line, isAbsolute }) => (isAbsolute === wanted ? line : []));
  return { inFolder: linesOf(false), absolute: linesOf(true) };
}

/** A repository that needs a key of the machine: `git+ssh://git@host/name`, `name @ git+ssh://...`. */
const WITH_KEY = /(^|[\s@])git\+ssh:/;
/** Packages that an index has only for Windows or macOS, and that `pip freeze` writes there. https://pypi.org/project/pywin32/#files, 2026-11-30 */
const FOREIGN = new Set(['pyobjc-core', 'pypiwin32', 'pywin32', 'pywinpty', 'tensorflow-intel', 'tensorflow-macos']);

/** Rules for the requirements file of a local code folder. */
export const REQUIREMENTS_RULES: readonly Rule[] = [
  rule('code/image-packages', 'warning, may acknowledge', (run, context) => {
    const pytorch = pytorchOfImage(run);
    const found = installed(run, context).flatMap((line) => {
      const given = requirementOf(line);
      return given && pytorch !== undefined && replacesPytorch(given, pytorch) ? [given.line] : [];
    });
    return when(found.length > 0, 'code.requirements', {
      must: `must keep PyTorch ${pytorch} of the image, which its NCCL, EFA plugin and other packages are built for`,
      got: someOf(found),
      fix: 'leave it out, choose an image with this version, or acknowledge it',
    });
  }),
  rule('code/package-places', 'error', (run, context) => {
    const network = context.descriptor?.network;
    const found = installed(run, context).filter((line) => ELSEWHERE.test(line));
    const isBeyondReach = network?.mode === 'vpc-locked' && (network.packages ?? 'none') !== 'none' && found.length > 0;
    return when(isBeyondReach, 'code.requirements', {
      must: `must name packages only: the network of the environment reaches no other place than its ${network?.packages}`,
      got: someOf(found),
      fix: 'ask the platform team to add the package there, or include it in the image',
    });
  }),
  rule('code/package-files', 'error, may acknowledge', (run, context) => {
    const { inFolder, absolute } = missingFiles(run, context);
    const lines = installed(run, context);
    const keyed = lines.filter((line) => WITH_KEY.test(line));
    const foreign = lines.filter((line) => !line.includes(';') && FOREIGN.has(requirementOf(line)?.name ?? ''));
    const must = 'must name only files of the code folder, by their path from it: the job has no others';
    return [
      ...when(inFolder.length > 0, 'code.requirements', {
        must,
        got: someOf(inFolder),
        fix: 'put the files into the folder and write their paths from there, or name packages by their versions',
      }),
      ...when(absolute.length > 0, 'code.requirements', {
        level: 'warning',
        must,
        got: someOf(absolute),
        fix: 'name packages by their versions (pip list --format=freeze prints them), or acknowledge it if the image has the files',
      }),
      ...when(keyed.length > 0, 'code.requirements', {
        level: 'warning',
        must: 'must name no repository that is read with an SSH key: the job has none',
        got: someOf(keyed),
        fix: 'put a wheel of it into the folder and write its path, or acknowledge it if the image has a key',
      }),
      ...when(foreign.length > 0, 'code.requirements', {
        must: 'must name packages that exist for Linux: pip finds none of these, and installs nothing',
        got: someOf(foreign),
        fix: `leave it out, or add ; sys_platform == "win32" to its line (or "darwin")`,
      }),
    ];
  }),
];
