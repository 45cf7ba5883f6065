import type { Command, Option } from 'commander';
import { VERSION } from './version';

const EXIT_CODES: readonly [code: string, meaning: string][] = [
  ['0', 'done'],
  ['1', 'refused by validation, plan, quota or guardrail'],
  ['2', 'wrong usage, or a file that cannot be read'],
  ['3', 'a service call failed'],
  ['4', 'the run ended Failed (with --wait)'],
  ['130', 'interrupted'],
];

/** slipway(1) in the man macros of troff (man 7): every verb with its options and examples. `npm run build` writes it to dist/slipway.1. */
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
    text(
      'Messages for people go to standard error, results to standard output; --json prints one JSON document there.',
    ),
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
    text('Address of the documentation, to which errors then link.'),
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

/** The lines below `Examples:` of the verb's help, as they are typed. */
function exampleLines(verb: Command): string[] {
  let help = '';
  verb.configureOutput({ writeOut: (part) => (help += part), getOutHasColors: () => false });
  verb.outputHelp();
  const [, examples = ''] = help.split('Examples:\n');
  const lines = examples.trimEnd().split('\n').filter(Boolean);
  return lines.length > 0
    ? ['.PP', 'Examples:', '.PP', '.nf', '.RS', ...lines.map((line) => text(line.trim())), '.RE', '.fi']
    : [];
}

/** Plain text for troff: no escapes, no requests at the start of a line, and hyphens that can be copied. */
function text(words: string): string {
  const escaped = words.replace(/\s+/g, ' ').replaceAll('\\', '\\e').replaceAll('-', '\\-');
  return /^[.']/.test(escaped) ? `\\&${escaped}` : escaped;
}
