import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parse, stringify } from 'yaml';
import type { Rule } from '../lib/core/config/rule';
import { RULES } from '../lib/core/rules';
import { ENVIRONMENT_RULES } from '../lib/core/rules/environment';

/** A rule for any kind of file. */
type Described = Omit<Rule, 'check'>;

const ALL: readonly Described[] = [...RULES, ...ENVIRONMENT_RULES];
const topicOf = (rule: Described) => rule.id.split('/')[0] ?? '';
const nameOf = (rule: Described) => rule.id.split('/').slice(1).join('-');
const TOPICS = [...new Set(ALL.map(topicOf))];

/** Folders below test/ with tables of files and what the rules say of them. */
const TABLES = ['core/rules/cases', 'core/rules/environment-cases', 'core/distribution/cases'];
/** Longer ones explain less than the message alone. */
const MAX_LINES = 16;

/** A part of a file, and what a rule says of it. */
interface Example {
  yaml: string;
  message: string;
}
interface Case {
  with?: object;
  also?: object;
  file?: object;
  context?: object;
  environment?: object;
  issues?: string[];
}

/** The shortest example of each rule in the tables of the tests, by rule. */
function examples(): Map<string, Example> {
  const found = new Map<string, Example>();
  for (const { file, also, issues = [], ...given } of TABLES.flatMap(casesOf)) {
    const part = withoutNull(file ?? { ...also, ...(given.with && { distribution: { parameters: given.with } }) });
    const [first, ...others] = issues;
    const rule = first?.split(' ')[1] ?? '';
    // What depends on something outside the file does not explain itself.
    if (!first || others.length > 0 || given.context || given.environment || Object.keys(part).length === 0) continue;
    const yaml = stringify(part, { lineWidth: 0 });
    const known = found.get(rule);
    if (yaml.split('\n').length > MAX_LINES || (known && known.yaml.length <= yaml.length)) continue;
    found.set(rule, { yaml, message: first.split(' ').slice(2).join(' ') });
  }
  return found;
}

/** In the tables, null stands for a field that the file leaves out. */
const withoutNull = (part: object): object =>
  Object.fromEntries(Object.entries(part).filter(([, value]) => value !== null));

function casesOf(folder: string): Case[] {
  const place = path.join(__dirname, '..', 'test', folder);
  return readdirSync(place)
    .filter((name) => name.endsWith('.yaml'))
    .flatMap((name) => (parse(readFileSync(path.join(place, name), 'utf8')) as { cases?: Case[] }).cases ?? []);
}

/** What a page says of a rule, which is written by hand; the rest of the page is generated. */
interface Prose {
  /** One sentence: the requirement. */
  what: string;
  /** The reason, the consequence of a violation, and the source. */
  why: string;
}

const FOLDER = path.join(__dirname, '..', 'docs', 'rules');

/**
 * The prose of every rule, from the first two paragraphs of its section.
 * @throws Error for a rule without a section
 */
export function proseOfRules(): Map<string, Prose> {
  const pages = new Map(TOPICS.map((topic) => [topic, sectionsOf(topic)]));
  return new Map(
    ALL.map((rule): [string, Prose] => {
      const [first, why] = pages.get(topicOf(rule))?.get(nameOf(rule)) ?? [];
      const what = first?.replace(/^`[^`]+`, (an error, which stops the \w+|a warning|information): /, '');
      if (!what || !why)
        throw new Error(
          `docs/rules/${topicOf(rule)}.md: must have the section "## ${nameOf(rule)}" with two paragraphs: ` +
            'what the rule requires, and why, with "Source: ..." at its end',
        );
      return [rule.id, { what, why }];
    }),
  );
}

/** The paragraphs of each section of a page, by heading. */
function sectionsOf(topic: string): Map<string, string[]> {
  const file = path.join(FOLDER, `${topic}.md`);
  const [, ...sections] = existsSync(file) ? readFileSync(file, 'utf8').split(/^## /m) : [];
  return new Map(
    sections.map((section): [string, string[]] => {
      const [heading = '', ...paragraphs] = section.trim().split(/\n{2,}/);
      return [heading, paragraphs];
    }),
  );
}

/** Pages of docs/rules by file name: one per topic, and an index. */
export function rulePages(): Map<string, string> {
  const shown = examples();
  const prose = proseOfRules();
  return new Map([
    ...TOPICS.map((topic): [string, string] => [`${topic}.md`, topicPage(topic, prose, shown)]),
    ['README.md', indexPage(prose)],
  ]);
}

function topicPage(topic: string, prose: ReadonlyMap<string, Prose>, shown: ReadonlyMap<string, Example>): string {
  const rules = ALL.filter((rule) => topicOf(rule) === topic);
  const sections = rules.map((rule) => section(rule, prose.get(rule.id), shown.get(rule.id)));
  return [`# Rules: ${topic}`, ...sections].join('\n\n').concat('\n');
}

function section(rule: Described, prose: Prose | undefined, example: Example | undefined): string {
  const parts = [`## ${nameOf(rule)}`, `\`${rule.id}\`, ${levelOf(rule)}: ${prose?.what}`, `${prose?.why}`];
  if (example) parts.push(`\`\`\`yaml\n${example.yaml}\`\`\``, `> ${literal(example.message)}`);
  if (rule.mayAcknowledge)
    parts.push(`If it does not hold for you: \`acknowledge: [{ rule: ${rule.id}, reason: "..." }]\`.`);
  return parts.join('\n\n');
}

/** Text with characters that Markdown would read. */
const literal = (text: string) => text.replace(/[\\`*_{}[\]<>#|]/g, '\\$&');

function levelOf(rule: Described): string {
  const stops = topicOf(rule) === 'environment' ? 'stops the deployment' : 'stops the launch';
  return { error: `an error, which ${stops}`, warning: 'a warning', info: 'information' }[rule.level];
}

function indexPage(prose: ReadonlyMap<string, Prose>): string {
  const sections = TOPICS.map((topic) => {
    const rows = ALL.filter((rule) => topicOf(rule) === topic).map(
      (rule) => `| [${rule.id}](${topic}.md#${nameOf(rule)}) | ${rule.level} | ${prose.get(rule.id)?.what} |`,
    );
    return `## ${topic}\n\n| rule | level | requirement |\n|---|---|---|\n${rows.join('\n')}\n`;
  });
  return [
    '# Rules',
    'What `slipway validate` checks in addition to the schema. A message has the form `<option>: <what must hold>, got <value>; <what to do>`, and names its rule. Rules about the environment need its descriptor: `validate` skips them without one, and `control` checks all of them again at a launch.',
    'An error stops a launch or a deploy. Some rules can be acknowledged with a reason (`acknowledge`), where their page says so. `npm run docs:rules` writes this page, and the levels and examples of the others.',
    ...sections,
  ].join('\n\n');
}
