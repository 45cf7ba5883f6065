import { jsonSchema } from '../../lib/core/config/load';
import { answersSchema } from '../../lib/core/contracts/answers';
import { LIBRARIES } from '../../lib/core/distribution';
import { CODE_FILES } from '../../lib/shared/archive/code-files';

/** The parts of JSON Schema that zod writes for our files and answers. */
interface Schema {
  type?: string;
  enum?: readonly unknown[];
  const?: unknown;
  anyOf?: readonly Schema[];
  oneOf?: readonly Schema[];
  items?: Schema;
  prefixItems?: readonly Schema[];
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[];
  additionalProperties?: Schema | boolean;
  $defs?: Readonly<Record<string, Schema>>;
}

const HEAD = `"""What run files hold and what Slipway answers.

Generated from schema/run.schema.json and schema/answers.schema.json by \`npm run python:types\`.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Union

`;

/** The documents of `--json` that the client returns. */
const ANSWERS = ['issue', 'plan', 'neuronPlan', 'status', 'event', 'logLine'];

/** Source of the module with a TypedDict for each object of the run file and of the answers that the client returns. */
export function pythonTypes(): string {
  const classes = new Classes();
  const run = typeOf(jsonSchema('run', LIBRARIES) as Schema, 'RunFile', classes);
  if (run !== 'RunFile') throw new Error(`the schema of the run file must be an object, got ${run}`);
  const answers = (answersSchema() as Schema).$defs ?? {};
  for (const name of ANSWERS) typeOf(answers[name] ?? {}, capital(name), classes);
  typeOf(answers.lineage?.properties?.checkpoint ?? {}, 'CheckpointOrigin', classes);
  const names = classes.names.filter((name) => !name.startsWith('_'));
  const all = `__all__ = [\n${names
    .sort()
    .map((name) => `    "${name}",\n`)
    .join('')}]\n`;
  return `${HEAD}${all}\n\n${classes.texts.join('\n\n')}`;
}

/** Source of the module with what is packed of a code folder. */
export function pythonCodeFiles(): string {
  const constants = Object.entries(CODE_FILES).map(([name, value]) => {
    const text = JSON.stringify(value)
      .replaceAll('","', '", "')
      .replace(/^\[(.*)\]$/, '($1)');
    return `${name.replace(/[A-Z]/g, '_$&').toUpperCase()} = ${text}\n`;
  });
  return `"""What is packed of a code folder. Generated from lib/shared/archive/code-files.ts by \`npm run python:types\`."""\n\n${constants.join('')}`;
}

/** Classes in the order of their definition; an object that was seen before has the name that it got then. */
class Classes {
  readonly texts: string[] = [];
  readonly #names = new Map<string, string>();

  get names(): string[] {
    return [...this.#names.values()];
  }

  known(schema: Schema): string | undefined {
    return this.#names.get(JSON.stringify(schema));
  }

  add(schema: Schema, name: string, ...texts: string[]): void {
    this.#names.set(JSON.stringify(schema), name);
    this.texts.push(...texts);
  }
}

const capital = (name: string) => name.charAt(0).toUpperCase() + name.slice(1);

/** The Python type of a schema; classes that it needs are added before it. */
function typeOf(schema: Schema, name: string, classes: Classes): string {
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return unionOf(choices.map((choice, i) => typeOf(choice, i === 0 ? name : `${name}${i + 1}`, classes)));
  if (schema.const !== undefined) return `Literal[${literal(schema.const)}]`;
  if (schema.enum) return literals(schema.enum.map(literal));
  switch (schema.type) {
    case 'string':
      return 'str';
    case 'integer':
      return 'int';
    case 'number':
      return 'float';
    case 'boolean':
      return 'bool';
    case 'null':
      return 'None';
    case 'array':
      if (schema.prefixItems)
        return `list[${unionOf(schema.prefixItems.map((item) => typeOf(item, `${name}Item`, classes)))}]`;
      return `list[${typeOf(schema.items ?? {}, `${name}Item`, classes)}]`;
    case 'object':
      return objectOf(schema, name, classes);
    default:
      return 'Any';
  }
}

function objectOf(schema: Schema, name: string, classes: Classes): string {
  if (!schema.properties) {
    const values = schema.additionalProperties;
    const value = typeof values === 'object' ? typeOf(values, `${name}Value`, classes) : 'Any';
    return `dict[str, ${value}]`;
  }
  const known = classes.known(schema);
  if (known) return known;
  const required = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties).map(([key, value]) => ({
    isRequired: required.has(key),
    line: `    ${key}: ${typeOf(value, `${name}${capital(key)}`, classes)}\n`,
  }));
  const lines = (isRequired: boolean) =>
    fields
      .filter((f) => f.isRequired === isRequired)
      .map((f) => f.line)
      .join('');
  const [needed, optional] = [lines(true), lines(false)];
  if (needed === '') classes.add(schema, name, `class ${name}(TypedDict, total=False):\n${optional}`);
  else if (optional === '') classes.add(schema, name, `class ${name}(TypedDict):\n${needed}`);
  // NotRequired came with Python 3.11.
  else
    classes.add(
      schema,
      name,
      `class _${name}(TypedDict):\n${needed}`,
      `class ${name}(_${name}, total=False):\n${optional}`,
    );
  return name;
}

/** `X | None` cannot be evaluated beside a literal in every Python that is supported; Union can. */
const unionOf = (types: readonly string[]): string => {
  const [only, ...others] = [...new Set(types)];
  return others.length === 0 ? (only ?? 'Any') : `Union[${[only, ...others].join(', ')}]`;
};

const literal = (value: unknown): string =>
  value === true ? 'True' : value === false ? 'False' : value === null ? 'None' : JSON.stringify(value);

/** A longer list has a line for each value; a line of the module has at most 140 characters. */
const literals = (values: readonly string[]): string => {
  const line = `Literal[${values.join(', ')}]`;
  return line.length < 100 ? line : `Literal[\n${values.map((value) => `        ${value},\n`).join('')}    ]`;
};
