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

function rules(): Item {
  const folders = readdirSync(path.join(DOCS, 'rules'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return {
    ...page('rules/README', 'Rules'),
    collapsed: true,
    items: folders.map(({ name }) =>
      section(
        name,
        pagesOf(`rules/${name}`).map((found) => page(found)),
        true,
      ),
    ),
  };
}

const GUIDES = [
  'quick-start',
  'first-deployment',
  'own-script',
  'pre-train',
  'fine-tune',
  'choose-a-layout',
  'trainium',
  'survive-failures',
  'capacity',
  'costs',
  'security-review',
  'day-2',
  'follow-runs',
  'publish',
  'train-from-ci',
  'upgrade',
  'migrate-from-sagemaker-sdk',
  'stranger',
  'migrate-from-hyperpod-recipes',
  'migrate-from-slurm',
  'troubleshooting',
];
const CONCEPTS = [
  'architecture',
  'planner',
  'goodput',
  'queue',
  'elastic',
  'spare-hosts',
  'health-check',
  'control-plane',
  'image',
];
const OPERATION = ['environment', 'platform-team', 'security', 'secrets', 'verify', 'assumptions'];
const TESTING = ['sandbox', 'emulator', 'simulate', 'faults', 'mutation'];
const EXTENDING = ['adding-a-strategy', 'library/README'];
const REFERENCE = ['run-file', 'environment-file', 'command-line', 'scenario-file', 'chat-data', 'runtime', 'editors'];

/** Pages of docs/ that no other section names: a new page is in the sidebar before somebody gives it a better place. */
function others(named: readonly string[]): Item[] {
  const pages = readdirSync(DOCS)
    .filter((file) => file.endsWith('.md'))
    .map((file) => file.slice(0, -3))
    .filter((name) => !['index', 'changelog', ...named].includes(name));
  return pages.length > 0
    ? [
        section(
          'More',
          pages.map((name) => page(name)),
        ),
      ]
    : [];
}

/** Pages of a folder, those that are listed first, the others after them. */
const ordered = (name: string, first: readonly string[]): Item[] => {
  const all = pagesOf(name).map((found) => found.slice(name.length + 1));
  const listed = first.filter((found) => all.includes(found));
  return [...listed, ...all.filter((found) => !listed.includes(found))].map((found) => page(`${name}/${found}`));
};

/** Every page of docs/. */
export function sidebar(): Item[] {
  const named = [...CONCEPTS, ...OPERATION, ...TESTING, ...EXTENDING];
  return [
    section('Guides', ordered('guides', GUIDES)),
    section(
      'Concepts',
      CONCEPTS.map((name) => page(name)),
    ),
    section('Operation', [...OPERATION.map((name) => page(name)), folder('runbooks', 'Runbooks')]),
    section('Reference', [
      page('reference/README', 'Overview'),
      ...ordered('reference', REFERENCE),
      rules(),
      folder('facts', 'Facts and their sources'),
    ]),
    section(
      'Without an account',
      TESTING.map((name) => page(name)),
    ),
    section(
      'Extending',
      EXTENDING.map((name) => page(name)),
    ),
    ...others(named),
    section('Project', [
      folder('contributing', 'Maintaining'),
      folder('decisions', 'Decisions'),
      page('evidence/README', 'Evidence'),
      page('evidence/2026-11-26-h200', 'One H200, 2026-11-26'),
      page('evidence/2026-11-23-h200', 'One H200, 2026-11-23'),
      page('changelog', 'Changelog'),
    ]),
  ];
}
