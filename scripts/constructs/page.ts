import type { Exported, Member } from './exports';

/** Cells of a table hold no line ends and no bars. */
const cell = (text: string): string => text.replace(/\s+/g, ' ').replaceAll('|', '\\|').trim();

/** Types stand in code: nothing in them is Markdown, or markup to a page that is rendered by Vue. */
const code = (text: string): string => (text === '' ? '' : `\`${cell(text)}\``);

/** docs/reference/constructs.md: what `import ... from 'slipway'` gives to another CDK app. */
export function constructsPage(found: readonly Exported[]): string {
  const constructs = found.filter(({ kind }) => kind === 'class');
  const propsOf = (name: string) => found.find((one) => one.kind === 'interface' && one.name === name);
  const shown = new Set(constructs.flatMap(({ parameters }) => parameters.map(propsName)));
  const others = found.filter(({ kind, name }) => kind === 'interface' && !shown.has(name));
  const functions = found.filter(({ kind }) => kind === 'other');
  return [
    '# Constructs',
    '',
    "What `import { ... } from 'slipway'` gives to a CDK app of your own. `npm run docs:constructs` writes this page from lib/cdk.",
    'Apps that use them are in [docs/library](../library/).',
    '',
    ...constructs.flatMap((one) => section(one, propsOf(one.parameters.map(propsName).find(propsOf) ?? ''))),
    '## Functions',
    '',
    ...functions.flatMap(({ name, doc }) => [`### ${name}`, '', doc, '']),
    '## Other types',
    '',
    ...others.flatMap((one) => [`### ${one.name}`, '', ...described(one), ...table(one.members)]),
  ].join('\n');
}

const propsName = (parameter: string): string => parameter.split(': ')[1]?.split(' ')[0] ?? '';

const described = ({ doc }: Exported): string[] => (doc === '' ? [] : [doc, '']);

function section(one: Exported, props: Exported | undefined): string[] {
  const methods = one.members.filter(({ isMethod }) => isMethod);
  const attributes = one.members.filter(({ isMethod }) => !isMethod);
  return [
    `## ${one.name}`,
    '',
    ...described(one),
    `Made with ${code(`new ${one.name}(${one.parameters.join(', ')})`)}.`,
    '',
    ...(props ? ['### Properties', '', ...extended(props), ...table(props.members)] : []),
    ...(attributes.length > 0 ? ['### Attributes', '', ...table(attributes)] : []),
    ...(methods.length > 0 ? ['### Methods', '', ...table(methods)] : []),
  ].map((line) => (line.startsWith('### ') ? `${line} of ${one.name}` : line));
}

const extended = (props: Exported): string[] => (props.extends ? [`Also those of \`${props.extends}\`.`, ''] : []);

function table(members: readonly Member[]): string[] {
  if (members.length === 0) return [];
  const hasDefault = members.some((one) => one.isOptional);
  const rows = members.map((one) =>
    [
      code(one.name),
      code(one.type),
      cell(one.doc),
      ...(hasDefault ? [one.isOptional ? cell(one.default ?? '').replace(/^- /, '') : 'required'] : []),
    ].join(' | '),
  );
  const head = ['name', 'type', 'what', ...(hasDefault ? ['default'] : [])];
  return [`| ${head.join(' | ')} |`, `|${head.map(() => '---').join('|')}|`, ...rows.map((row) => `| ${row} |`), ''];
}
