import type { Command, Option } from 'commander';
import { EXIT_CODES, helpOf } from './help-text';
import { VERSION } from './version';

/**
 * The manual page slipway(1) in troff's man macros (man 7): every verb with its options and examples. `npm run build` writes it to
 * dist/slipway.1.
 */
export function manPage(program: Command): string {
  const verbs = program.commands.filter((command) => command.name() !== 'help');
  return [
    `.TH SLIPWAY 1 "" "slipway ${VERSION}" "User Commands"`,
    '.SH NAME',
    `slipway \\- ${text(program.description())}`,
    '.SH SYNOPSIS',
    '.B slipway',
    '.I verb',
    '.RI [ options ]',
    '.SH DESCRIPTION',
    text('Messages for users go to standard error, results to standard output; --json prints one JSON document there.'),
    '.SH VERBS',
    ...verbs.flatMap(verbLines),
    '.SH EXIT STATUS',
    ...EXIT_CODES.flatMap(([code, meaning]) => ['.TP', `.B ${code}`, text(meaning)]),
    '.SH ENVIRONMENT',
    '.TP',
    '.B SLIPWAY_DEBUG',
    text('1 adds the stack trace to an error.'),
    '.TP',
    '.B SLIPWAY_DOCS_URL',
    text('URL of the documentation; error messages then contain links to it.'),
    '',
  ].join('\n');
}

function verbLines(verb: Command): string[] {
  const usage = verb.registeredArguments.map((one) => (one.required ? `<${one.name()}>` : `[${one.name()}]`)).join(' ');
  return [
    `.SS slipway ${text([verb.name(), usage].join(' ').trim())}`,
    text(verb.description()),
    ...verb.options.flatMap(optionLines),
    ...exampleLines(verb),
  ];
}

const optionLines = ({ flags, description }: Option): string[] => ['.TP', `\\fB${text(flags)}\\fR`, text(description)];

/** The lines after `Examples:` in the verb's help. */
function exampleLines(verb: Command): string[] {
  const [, examples = ''] = helpOf(verb).split('Examples:\n');
  const lines = examples.split('\n').filter(Boolean);
  return lines.length > 0
    ? ['.PP', 'Examples:', '.PP', '.nf', '.RS', ...lines.map((line) => text(line.trim())), '.RE', '.fi']
    : [];
}

/** Escapes plain text for troff: backslashes, requests at the start of a line, and hyphens, so that they can be copied. */
function text(words: string): string {
  const escaped = words.replace(/\s+/g, ' ').replaceAll('\\', '\\e').replaceAll('-', '\\-');
  return /^[.']/.test(escaped) ? `\\&${escaped}` : escaped;
}
