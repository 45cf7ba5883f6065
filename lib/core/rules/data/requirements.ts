import { channelFolder } from '../../config/formats/places';
import { type Rule, type RuleContext, rule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { compareVersions, pytorchOfImage } from '../../distribution/image-version';
import { plainName, someOf, toolkitRequirements } from './code-folder';

/** Minor version of torchvision that belongs to PyTorch 2.0; later ones follow it. https://github.com/pytorch/vision#installation */
const TORCHVISION_OF_2_0 = 15;

/** What a line of a requirements file says. */
interface Requirement {
  line: string;
  /** `-` for a line that begins with none. */
  option: string;
  /** The package, in the spelling of indexes; empty for options and for a place alone. */
  name: string;
  clauses: readonly { operator: string; version: string }[];
  /** An address, a file or a folder, in place of a version or after an option; empty for none. */
  place: string;
  isAddress: boolean;
}

/** Other options, such as --trusted-host, name no place. */
const WITH_PLACE = /^(-[cefir]?|--(constraint|editable|find-links|(extra-)?index-url|requirement))$/;

/** https://pip.pypa.io/en/stable/reference/requirements-file-format/, 2026-11-30 */
export function requirementOf(line: string): Requirement {
  const [text = ''] = line.replace(/["']/g, '').split(/\s;|;\s/, 1);
  const [, option = '-', rest = ''] = /^(-[a-z]|--[a-z-]+)?[\s=]*(.*)$/.exec(text.trimEnd()) ?? [];
  const [, label = '', at, after = ''] = /^([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*(@\s*)?([^;]*)/.exec(rest) ?? [];
  const isPlace = option !== '-' || /^[\w+.-]*:|[/\\]|^(git\+|\.)|\.(whl|zip|tar\.gz)$/.test(rest);
  const given = at ? after : isPlace && WITH_PLACE.test(option) ? rest : '';
  const place = given.replace(/\[[\w,\s.-]*\]$/, '').replace(/^file:(\/\/(localhost)?)?/, '');
  const clauses = after.split(',').flatMap((clause) => {
    const [, operator = '', version = ''] = /^\s*\(?(===?|~=|!=|<=?|>=?)\s*v?(\d+(?:\.\d+)*)/.exec(clause) ?? [];
    return operator === '' ? [] : [{ operator, version }];
  });
  return {
    line,
    option,
    name: isPlace && !at ? '' : label.toLowerCase().replace(/[._-]+/g, '-'),
    clauses,
    place,
    isAddress: /^(git|hg|svn|bzr)\+|^[a-z]{2,}:/i.test(place),
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

/** Packages each version of which requires exactly one of PyTorch. https://github.com/vllm-project/vllm/issues/13116, 2026-11-30 */
const WITH_PYTORCH = new Set(['sglang', 'vllm']);

/** Whether pip replaces PyTorch, or the NCCL that it loads, for a requirement. */
function replacesPytorch(given: Requirement, pytorch: string): boolean {
  const { name, clauses, place } = given;
  if (WITH_PYTORCH.has(name)) return true;
  if (/^nvidia-nccl-cu\d+$/.test(name)) return clauses.length > 0 || place !== '';
  const [major = '', minor = ''] = pytorch.split('.');
  const installed = name === 'torchvision' ? `0.${Number(minor) + TORCHVISION_OF_2_0}` : pytorch;
  if (!['torch', 'torchaudio', 'torchvision'].includes(name) || (name === 'torchvision' && major !== '2')) return false;
  return place !== '' || !clauses.every((clause) => satisfies(installed, clause));
}

/** A condition that does not hold on Linux. */
const FOREIGN_MARKER = /^[^;]*;.*(platform|system|os_name)\s*(==\s*["'](win|darwin|nt)|!=\s*["'](linux|posix))/i;

/** What the file says that is installed on Linux: of code.requirements, or the one that the toolkit finds itself. */
function installed(run: RunSpec, context: RuleContext): readonly Requirement[] {
  const wanted = run.code.requirements ?? toolkitRequirements(run, context);
  if (wanted === undefined) return [];
  const file = context.codeFolder?.files.find(({ name }) => name === plainName(wanted));
  return (file?.requirements ?? []).filter((line) => !FOREIGN_MARKER.test(line)).map(requirementOf);
}

/** Lines with a file that is not in the code folder: certainly, or unless the image has it. */
function missingFiles(run: RunSpec, context: RuleContext): { inFolder: string[]; absolute: string[] } {
  const folders = plainName(run.code.requirements ?? '')
    .split('/')
    .slice(0, -1);
  const names = context.codeFolder?.files.map(({ name }) => name) ?? [];
  const isThere = (path: string, isInstalled: boolean) => {
    const name = plainName(path);
    // pip builds a folder that it installs, and only searches others.
    const isProject = ['setup.py', 'pyproject.toml'].some((file) => names.includes(plainName(`${name}/${file}`)));
    const isFolder = name === '' || names.some((file) => file.startsWith(`${name}/`));
    return names.includes(name) || (isInstalled ? isProject : isFolder);
  };
  const found = installed(run, context).flatMap(({ line, option, place, isAddress }) => {
    // What a channel contains is known only in the job, and so are variables, which pip expands.
    if (place === '' || isAddress || place.startsWith(channelFolder('')) || /\$\{\w+\}/.test(place)) return [];
    const isBesideFile = /^(-[cr]|--requirement|--constraint)$/.test(option);
    const isAbsolute = place.startsWith('/');
    const isInstalled = /^(-|-e|--editable)$/.test(option);
    const path = [...(isBesideFile ? folders : []), place].join('/');
    return isAbsolute || !isThere(path, isInstalled) ? [{ line, isAbsolute }] : [];
  });
  const linesOf = (wanted: boolean) => found.flatMap(({ line, isAbsolute }) => (isAbsolute === wanted ? line : []));
  return { inFolder: linesOf(false), absolute: linesOf(true) };
}

/** A repository that needs a key of the machine: `git+ssh://git@host/name`, or `git+git@host:name`. */
const WITH_KEY = /^[a-z]+\+(ssh:|[\w.-]+@)/;
/** Packages that an index has only for Windows or macOS, and that `pip freeze` writes there. https://pypi.org/project/pywin32/#files, 2026-11-30 */
const FOREIGN = new Set(['pyobjc-core', 'pypiwin32', 'pywin32', 'pywinpty', 'tensorflow-intel', 'tensorflow-macos']);

/** A wheel for Windows or macOS. */
const FOREIGN_WHEEL = /-(win32|win_\w+|macosx_\w+)\.whl\b/;

export const REQUIREMENTS_RULES: readonly Rule[] = [
  rule('code/image-packages', 'warning, may acknowledge', (run, context) => {
    const pytorch = pytorchOfImage(run);
    const found = installed(run, context).flatMap((given) =>
      pytorch !== undefined && replacesPytorch(given, pytorch) ? [given.line] : [],
    );
    return when(found.length > 0, 'code.requirements', {
      must: `must keep PyTorch ${pytorch} of the image, which its NCCL, EFA plugin and other packages are built for`,
      got: someOf(found),
      fix: 'leave it out, choose an image with this version, or acknowledge it',
    });
  }),
  rule('code/package-places', 'error', (run, context) => {
    const network = context.descriptor?.network;
    const found = installed(run, context).flatMap(({ line, isAddress }) => (isAddress ? [line] : []));
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
    const keyed = lines.flatMap(({ line, place }) => (WITH_KEY.test(place) ? [line] : []));
    const foreign = lines.flatMap(({ line, name, place }) =>
      !line.includes(';') && (FOREIGN.has(name) || FOREIGN_WHEEL.test(place)) ? [line] : [],
    );
    const must =
      'must name only files of the code folder, and folders of it with a setup.py or pyproject.toml, by their path from it: the job has no others';
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
        must: 'must name packages that exist for Linux: pip takes none of these, and installs nothing',
        got: someOf(foreign),
        fix: `leave it out, or add ; sys_platform == "win32" to its line (or "darwin")`,
      }),
    ];
  }),
];
