import type { CodeFolder } from '../../config/code-source';
import { type Rule, type RuleContext, rule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { compareVersions, pytorchOfImage } from '../../distribution/image-version';
import { plainName, someOf } from './script-text';

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
  const known = installed.split('.').length;
  const wanted = version.split('.').slice(0, known).join('.');
  const order = compareVersions(installed, wanted);
  switch (operator) {
    case '<':
      return order < 0 || (order === 0 && version.split('.').length > known);
    case '<=':
      return order <= 0;
    case '>':
      return order > 0 || (order === 0 && version.split('.').length > known);
    case '>=':
      return order >= 0;
    case '!=':
      return true;
    case '~=':
      return (
        order >= 0 &&
        version
          .split('.')
          .slice(0, -1)
          .every((part, i) => part === (installed.split('.')[i] ?? part))
      );
    default:
      return order === 0;
  }
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

const fileOf = ({ code }: RunSpec, { files }: CodeFolder) =>
  files.find(({ name }) => name === plainName(code.requirements ?? 'requirements.txt'));

/** The lines of the file that is installed: of code.requirements, or the one that the toolkit finds itself. */
function installed(run: RunSpec, { codeFolder }: RuleContext): readonly string[] {
  const isInstalled = run.code.requirements !== undefined || run.distribution.contract === 'toolkit';
  return (isInstalled && codeFolder && fileOf(run, codeFolder)?.requirements) || [];
}

/** Lines that send pip to another place than the index. */
const ELSEWHERE =
  /^(?:-e\s+|--editable[\s=]+)?(?:git|hg|svn|bzr)\+|^(?:-e\s+)?https?:\/\/|@\s*(?:git\+|https?:\/\/)|^(?:-i|--index-url|--extra-index-url|-f|--find-links)\b[\s=]*https?:/;

/** Rules for what a requirements file contains. */
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
];
