import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

export interface Item {
  text: string;
  link?: string;
  collapsed?: boolean;
  items?: Item[];
}

const DOCS = path.resolve(import.meta.dirname, '..');

/** The first heading of a page. */
const titleOf = (page: string): string =>
  /^# (.+)$/m.exec(readFileSync(path.join(DOCS, `${page}.md`), 'utf8'))?.[1]?.replaceAll('`', '') ?? page;

const page = (name: string, text = titleOf(name)): Item => ({
  text,
  link: `/${name.replace(/(^|\/)README$/, '$1').replace(/(^|\/)index$/, '$1')}`,
});

const pagesOf = (folder: string): string[] =>
  readdirSync(path.join(DOCS, folder))
    .filter((file) => file.endsWith('.md') && file !== 'README.md')
    .sort()
    .map((file) => `${folder}/${file.slice(0, -3)}`);

const section = (text: string, items: Item[], collapsed = false): Item => ({ text, items, collapsed });

/** A folder with a page of its own that lists the others. */
const folder = (name: string, text: string): Item => ({
  ...page(`${name}/README`, text),
  items: pagesOf(name).map((found) => page(found)),
  collapsed: true,
});

const PLATFORM = [
  'guides/first-deployment',
  'platform-team',
  'environment',
  'security',
  'secrets',
  'image',
  'verify',
  'guides/costs',
  'guides/security-review',
  'guides/day-2',
  'guides/upgrade',
  'guides/uninstall',
  'guides/limits',
  'library/README',
];
const RESEARCH = [
  'guides/quick-start',
  'guides/trainers',
  'guides/own-script',
  'guides/pre-train',
  'guides/token-format',
  'guides/fine-tune',
  'guides/fine-tune-a-hub-model',
  'guides/choose-a-layout',
  'guides/which-instance',
  'guides/capacity',
  'guides/follow-runs',
  'guides/survive-failures',
  'guides/read-a-failure',
  'guides/debug-multi-node',
  'guides/publish',
  'guides/train-from-ci',
  'guides/ray',
  'guides/trainium',
  'guides/migrate-from-sagemaker-sdk',
  'guides/stranger',
  'guides/migrate-from-hyperpod-recipes',
  'guides/migrate-from-slurm',
  'import',
  'guides/troubleshooting',
];
const CONCEPTS = ['planner', 'queue', 'elastic', 'recovery', 'spare-hosts', 'health-check', 'control-plane', 'sandbox'];
const REFERENCE = ['run-file', 'environment-file', 'command-line', 'chat-data', 'runtime', 'editors'];
/** For those who maintain Slipway. The search of the site leaves them out. */
const INTERNALS = [
  'architecture',
  'assumptions',
  'goodput',
  'faults',
  'numerics',
  'emulator',
  'simulate',
  'reference/scenario-file',
  'mutation',
];
const INTERNAL_FOLDERS: Readonly<Record<string, string>> = {
  contributing: 'Maintaining',
  decisions: 'Decisions',
  facts: 'Facts and their sources',
  evidence: 'Evidence',
};

/** Whether a page is for those who maintain Slipway. @param file its path below docs/ */
export const isInternal = (file: string): boolean =>
  INTERNALS.includes(file.replace(/\.md$/, '')) || Object.hasOwn(INTERNAL_FOLDERS, file.split('/')[0] ?? '');

/** Addresses of the internals. */
export const internalPlaces = (): string[] => [
  ...INTERNALS.map((name) => `/${name}`),
  ...Object.keys(INTERNAL_FOLDERS).map((name) => `/${name}/`),
];

const listed = (names: readonly string[]): Item[] => names.map((name) => page(name));

/** Pages of a folder that no section names: a new page is in the sidebar before somebody gives it a better place. */
function others(folderName: string, named: readonly string[]): Item[] {
  const names = pagesOf(folderName).map((name) => name.replace(/^\.\//, ''));
  return listed(names.filter((name) => !['index', ...named].includes(name)));
}

const NAMED = [...PLATFORM, ...RESEARCH, ...CONCEPTS, ...INTERNALS, 'agents', 'changelog', 'runbooks'];

/** Every page of docs/ that is for users. */
export function sidebar(): Item[] {
  const reference = REFERENCE.map((name) => `reference/${name}`);
  return [
    section('For platform engineers', listed(PLATFORM)),
    section('For researchers', [...listed(RESEARCH), ...others('guides', NAMED)]),
    section('Concepts', [...listed(CONCEPTS), ...others('.', NAMED)]),
    section('Reference', [
      page('reference/README', 'Overview'),
      ...listed(reference),
      ...others('reference', [...reference, ...NAMED]),
      folder('rules', 'Rules'),
      page('runbooks'),
      ...others('library', NAMED),
      page('agents'),
      page('changelog', 'Changelog'),
    ]),
    section('Internals', [page('architecture', 'How Slipway is built and shown to work')]),
  ];
}

/** The pages for those who maintain Slipway. */
export const internals = (): Item[] => [
  section('Internals', listed(INTERNALS)),
  ...Object.entries(INTERNAL_FOLDERS).map(([name, text]) => folder(name, text)),
  section('Users', [page('index', 'Home')]),
];
