import { parse } from 'yaml';
import { isTooDeep } from '../../core/config/reading/yaml-file';
import { readCommand, splitWords } from './command-line';
import { type Drafted, filled } from './draft';
import { ofCommand } from './from-request';
import { type ImportContext, type Imported, importDraft, importRequest } from './import-request';
import { findRequest, isObject } from './read-request';
import { draftOfRecipe, isRecipe } from './recipe';

export { type ImportContext, type Imported, importRequest } from './import-request';

export { TRAINER_CHANNEL, type TrainerFiles } from './model-trainer';

export { findRequest } from './read-request';

/** Placeholder when a command line contains no cluster: one host, whose type the user must set. */
const UNKNOWN_TYPE = 'ml.p4d.24xlarge';

/**
 * Imports a file: a request or the response of DescribeTrainingJob (JSON or YAML), a HyperPod recipe, or the command line that starts
 * training. Undefined for any other content.
 */
export function importText(text: string, context: ImportContext): Imported | undefined {
  const document = structureOf(text);
  const request = findRequest(document);
  if (request) return importRequest(request, context);
  if (isRecipe(document)) return importDraft(draftOfRecipe(document), context);
  const drafted = typeof document === 'string' || document === undefined ? ofCommandText(text) : undefined;
  return drafted && importDraft(drafted, context);
}

/** Parses a JSON or YAML text; undefined for other texts. Never throws. */
function structureOf(text: string): unknown {
  if (isTooDeep(text)) return undefined;
  try {
    const value = parse(text, { logLevel: 'silent' }) as unknown;
    return isObject(value) || Array.isArray(value) ? value : typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The last command of a shell script with a known program. */
function ofCommandText(text: string): Drafted | undefined {
  const lines = text
    .replace(/\\\r?\n/g, ' ')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  const command = lines.map((line) => readCommand(splitWords(line))).findLast((read) => read !== undefined);
  if (!command) return undefined;
  const drafted = ofCommand(command, './src', 'command');
  const { code, distribution, environmentVariables } = drafted.draft;
  const draft = filled({
    name: 'imported',
    code,
    compute: { instanceType: UNKNOWN_TYPE, instanceCount: command.hosts ?? 1 },
    distribution,
    checkpoints: { mode: 'none' },
    environmentVariables: filled((environmentVariables ?? {}) as Record<string, unknown>),
  });
  const why = `a command line contains no instance type; ${UNKNOWN_TYPE} is a placeholder: set compute.instanceType`;
  return {
    draft: draft ?? {},
    remarks: [...drafted.remarks, { field: 'instance type', value: '(not set)', why }],
  };
}
