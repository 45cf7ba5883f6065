import type { Command } from 'commander';
import { EXIT_CODES, helpOf } from './help-text';

const HEAD = `# Command line

Generated from the command line itself by \`npm run docs:cli\`. \`--json\` prints exactly one JSON document on stdout and nothing else; messages for people go to stderr.
\`--environment\` with a name (or \`name/team\`) reads the descriptor of a deployed environment from SSM; with a path that ends in \`.json\` it reads that file, so that everything up to the
request works offline. Verbs that need an environment and find it neither there nor in the run file take the one that \`SLIPWAY_ENVIRONMENT\` names. With \`--json\`, a refusal prints \`{ok: false, issues: [...]}\`.

| exit code | meaning |
|---|---|
${EXIT_CODES.map(([code, meaning]) => `| ${code} | ${meaning.replace('--wait', '`--wait`')} |`).join('\n')}

Every error reads \`<option as written>: <what must hold>, got <value>; <what to do>\`, all of them at once; a stack trace is printed only with \`SLIPWAY_DEBUG=1\`.
`;

/** docs/reference/command-line.md: every verb with its description and the help that it prints. */
export function referencePage(program: Command): string {
  const verbs = program.commands.filter((command) => command.name() !== 'help');
  const rows = verbs.map((verb) => `| [\`${verb.name()}\`](#${verb.name()}) | ${verb.description()} |`);
  const sections = verbs.map((verb) => `## ${verb.name()}\n\n\`\`\`text\n${helpOf(verb)}\n\`\`\`\n`);
  return [HEAD, ['| verb | does |', '|---|---|', ...rows, ''].join('\n'), ...sections].join('\n');
}
