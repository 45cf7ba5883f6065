import type { Command } from 'commander';
import { namedVerbs } from '../lib/cli/command-line';
import { EXIT } from '../lib/cli/exit';

/** The meaning of each exit code. */
const EXIT_CODES: readonly (readonly [code: number, meaning: string])[] = [
  [EXIT.done, 'done'],
  [EXIT.refused, 'refused by validation, plan, quota or guardrail'],
  [EXIT.usage, 'wrong usage, or a file that cannot be read or written'],
  [EXIT.service, 'a service call failed'],
  [EXIT.runFailed, 'the run ended, and has not completed (with --wait)'],
  [EXIT.internal, 'internal error: a bug of Slipway'],
  [EXIT.interrupted, 'interrupted'],
];

/** The output of `slipway VERB --help` on a terminal of 100 columns, without colours. */
function helpOf(verb: Command): string {
  let text = '';
  const width = () => 100;
  verb.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: width, getOutHasColors: () => false });
  verb.outputHelp();
  return text.trimEnd();
}

const HEAD = `# Command line

Generated from the command definitions by \`npm run docs:cli\`. With \`--json\`, a verb prints exactly one JSON document to stdout; \`logs\`, events and charts print one for each line. All other messages go to stderr.
\`--environment\` with a name (or \`name/team\`) reads the descriptor of a deployed environment from SSM; with a path that ends in \`.json\` it reads that file, so that all steps before the
request work offline. If neither this option nor the run file names an environment, verbs that need one use \`SLIPWAY_ENVIRONMENT\`. With \`--json\`, a call that fails prints
\`{ok: false, issues: [...]}\`, unless its document was already printed. The \`rule\` of an issue is the id of a rule, or \`command/usage\`, \`command/file\`, \`command/service\`, \`command/interrupted\` or \`command/internal\`.

| exit code | meaning |
|---|---|
${EXIT_CODES.map(([code, meaning]) => `| ${code} | ${meaning.replace('--wait', '`--wait`')} |`).join('\n')}

Every error has the form \`<option as written>: <what must hold>, got <value>; <what to do>\`; all errors are reported together. A stack trace is printed only with \`SLIPWAY_DEBUG=1\`; a report of an internal error should contain it.

Calls to AWS, and those that sign in, go through the proxy that \`HTTPS_PROXY\` names (\`http://\` or \`https://\`; \`HOST:PORT\` is the former), except to hosts in \`NO_PROXY\`, in which \`.amazonaws.com\` is all that end so. \`AWS_CA_BUNDLE\` names a file with certificates that are trusted in place of those of Node.js, \`NODE_EXTRA_CA_CERTS\` one with further ones. A call without an answer fails after 70 seconds, and is tried three times.

Text of jobs, people and files is printed without escape sequences and invisible characters, and a long one is cut. JSON contains all of it, with escapes for these characters.
`;

/** docs/reference/command-line.md: every verb with its description and the help that it prints. */
export function referencePage(program: Command): string {
  const verbs = namedVerbs(program).filter(({ command }) => command.commands.length === 0);
  const rows = verbs.map(
    ({ name, command }) => `| [\`${name}\`](#${name.replace(' ', '-')}) | ${command.description()} |`,
  );
  const sections = verbs.map(({ name, command }) => `## ${name}\n\n\`\`\`text\n${helpOf(command)}\n\`\`\`\n`);
  return [HEAD, ['| verb | description |', '|---|---|', ...rows, ''].join('\n'), ...sections].join('\n');
}
