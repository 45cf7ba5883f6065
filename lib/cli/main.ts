import { Command, CommanderError, Option } from 'commander';
import type { CommonOptions } from './inputs';
import type { LaunchOptions } from './launch';
import { reportError } from './report-error';
import { processTerminal, type Terminal } from './terminal';

const collect = (value: string, previous: string[] = []) => [...previous, value];

/** Options that every verb takes (contract/cli.md). */
function common(command: Command): Command {
  return command
    .option('--environment <name|file>', 'environment, environment/team, or a descriptor file (.json)')
    .option('--region <region>', "region; default: the environment's")
    .option('--set <path=value>', 'overrides an option of the file before validation (repeatable)', collect)
    .option('--json', 'print one JSON document on stdout');
}

/** The command line; every verb's code is loaded when it is called, so that `--help` stays fast. */
export function program(terminal: Terminal, done: (code: number) => void): Command {
  const root = new Command('slipway')
    .description(
      'LLM training on Amazon SageMaker training jobs: checked before it spends, kept going until it is done',
    )
    .version('0.1.0')
    .exitOverride()
    .configureOutput({
      writeErr: (text) => terminal.err(text.trimEnd()),
      writeOut: (text) => terminal.out(text.trimEnd()),
    });
  const verb = (name: string, description: string, example: string) =>
    common(root.command(name).description(description).addHelpText('after', `\nExample:\n  ${example}`));

  verb('init [directory]', 'write a starter environment file and run file', 'slipway init my-training').action(
    async (directory = '.', options: CommonOptions) =>
      done((await import('./init.js')).init(directory, options, terminal)),
  );
  verb(
    'schema <run|environment>',
    'print the JSON Schema of a file, for editors',
    'slipway schema run > run.schema.json',
  ).action(async (kind: string) => done((await import('./schema.js')).schema(kind, terminal)));
  verb(
    'validate <file>',
    'check a run file or an environment file against every rule, offline',
    'slipway validate runs/llama2-13b.yaml',
  ).action(async (file: string, options: CommonOptions) =>
    done((await import('./validate.js')).validate(file, options, terminal)),
  );
  verb(
    'launch <file>',
    'validate, plan, preflight, upload and submit a run',
    'slipway launch runs/llama2-13b.yaml --environment research',
  )
    .option('--dry-run', 'print the exact request and call nothing')
    .option('--out <dir>', 'with --dry-run: also write the request and everything its channels would hold')
    .option('--run-id <id>', 'run id; default: <name>-<yymmddhhmmss>')
    .addOption(new Option('--yes', 'do not ask'))
    .addOption(new Option('--wait', 'follow the run until it ends'))
    .action(async (file: string, options: LaunchOptions) =>
      done(await (await import('./launch.js')).launch(file, options, terminal)),
    );
  return root;
}

/** Runs the command line and returns its exit code; errors are reported here and nowhere else. */
export async function main(argv: readonly string[], terminal: Terminal = processTerminal): Promise<number> {
  let code = 0;
  const asJson = argv.includes('--json');
  try {
    await program(terminal, (result) => {
      code = result;
    }).parseAsync([...argv]);
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    return reportError(error, { asJson, file: argv[3] ?? '' }, terminal);
  }
}
