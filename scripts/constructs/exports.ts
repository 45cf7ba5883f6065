import { readFileSync } from 'node:fs';
import path from 'node:path';
import { type Comment, type Node, parseSync } from 'oxc-parser';
import { docCommentBefore } from '../doc-comment';

const ROOT = path.resolve(__dirname, '..', '..');
const ENTRY = 'lib/cdk/index.ts';

/** A property, method or attribute that another app can see. */
export interface Member {
  name: string;
  type: string;
  isOptional: boolean;
  isMethod: boolean;
  /** Text before the first tag; '' where there is none. */
  doc: string;
  /** What `@default` says. */
  default?: string;
}

/** A class or an interface of the package's entry point. */
export interface Exported {
  name: string;
  kind: 'class' | 'interface' | 'other';
  /** Interface or class that it extends. */
  extends?: string;
  /** File below the root that declares it. */
  file: string;
  doc: string;
  /** Types of the parameters of the constructor, as written. */
  parameters: string[];
  members: Member[];
}

type Loose = Node & Record<string, unknown>;

/** Everything that `lib/cdk/index.ts` exports from its own folder, in the order of the file. */
export function exportsOfConstructs(): Exported[] {
  const text = readFileSync(path.join(ROOT, ENTRY), 'utf8');
  return (parseSync(ENTRY, text).program.body as unknown as Loose[]).flatMap((statement) => {
    const from = (statement.source as { value?: string } | null)?.value ?? '';
    if (statement.type !== 'ExportNamedDeclaration' || !from.startsWith('./')) return [];
    const names = (statement.specifiers as Loose[]).map(({ local }) => (local as { name?: string }).name ?? '');
    return declarations(path.posix.join('lib/cdk', `${from}.ts`), names);
  });
}

function declarations(file: string, names: readonly string[]): Exported[] {
  const text = readFileSync(path.join(ROOT, file), 'utf8');
  const { program, comments } = parseSync(file, text);
  const source = { text, comments };
  return (program.body as unknown as Loose[]).flatMap((statement) => {
    const declared = statement.declaration as Loose | null;
    const name = (declared?.id as { name?: string } | undefined)?.name ?? '';
    if (statement.type !== 'ExportNamedDeclaration' || !declared || !names.includes(name)) return [];
    const kinds: Record<string, Exported['kind']> = { ClassDeclaration: 'class', TSInterfaceDeclaration: 'interface' };
    const base = declared.superClass ?? (declared.extends as Node[] | undefined)?.[0];
    const members = ((declared.body as { body?: Loose[] } | undefined)?.body ?? []) as Loose[];
    const made = members.find((one) => one.kind === 'constructor');
    return {
      name,
      kind: kinds[declared.type] ?? 'other',
      ...(base ? { extends: plain(slice(source, base as Node)) } : {}),
      file,
      doc: docBefore(source, statement).doc,
      parameters: made ? parametersOf(source, made) : [],
      members: members.flatMap((one) => memberOf(source, one)),
    };
  });
}

interface Source {
  text: string;
  comments: readonly Comment[];
}

const slice = ({ text }: Source, node: { start: number; end: number }): string => text.slice(node.start, node.end);

function memberOf(source: Source, node: Loose): Member[] {
  const name = (node.key as { name?: string } | undefined)?.name;
  const isVisible = node.accessibility == null || node.accessibility === 'public';
  const isKnown = /^(TSPropertySignature|TSMethodSignature|PropertyDefinition|MethodDefinition)$/.test(node.type);
  if (!isKnown || !name || !isVisible || node.kind === 'constructor') return [];
  const isMethod = /^(MethodDefinition|TSMethodSignature)$/.test(node.type);
  const { doc, tags } = docBefore(source, node);
  return [
    {
      name,
      type: isMethod ? signatureOf(source, node) : typeOf(source, node),
      isOptional: node.optional === true,
      isMethod: isMethod && node.kind !== 'get',
      doc,
      ...(tags.default === undefined ? {} : { default: tags.default }),
    },
  ];
}

const typeOf = (source: Source, node: Loose): string => {
  const annotation = node.typeAnnotation as { typeAnnotation: Node } | null | undefined;
  return annotation ? plain(slice(source, annotation.typeAnnotation)) : '';
};

function signatureOf(source: Source, node: Loose): string {
  const held = (node.value ?? node) as Loose;
  const returned = (held.returnType as { typeAnnotation: Node } | null)?.typeAnnotation;
  if (node.kind === 'get') return returned ? plain(slice(source, returned)) : '';
  const params = (held.params as Node[]).map((one) => plain(slice(source, one)));
  return `(${params.join(', ')})${returned ? `: ${plain(slice(source, returned))}` : ''}`;
}

const parametersOf = (source: Source, made: Loose): string[] =>
  ((made.value as { params: Loose[] }).params ?? []).map((one) =>
    plain(slice(source, one)).replace(/^(private|public) readonly /, ''),
  );

const plain = (text: string): string =>
  text
    .replace(/\s+/g, ' ')
    .replace(/([<(,]) ?\| /g, '$1 ')
    .replace(/([<(]) /g, '$1')
    .replace(/,? ([>)])/g, '$1');

/** The documentation comment directly before a node, and its tags. */
function docBefore(source: Source, node: { start: number }): { doc: string; tags: Record<string, string> } {
  const lines = (docCommentBefore(source.text, source.comments, node.start) ?? '').split('\n');
  const words = lines.map((line) => line.replace(/^\s*\* ?/, '').trimEnd()).join('\n');
  const [doc = '', ...rest] = words.split(/(?:^|(?<=[\s]))@(?=default\b|throws\b|param\b|returns\b)/);
  const tags = rest.map((tag) => [tag.split(/\s/)[0] ?? '', tag.replace(/^\S+\s*/, '').trim()] as const);
  return { doc: doc.trim(), tags: Object.fromEntries(tags.map(([tag, text]) => [tag, text.replace(/\s+/g, ' ')])) };
}
