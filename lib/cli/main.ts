import { Command, CommanderError } from 'commander';
import { ENDING_SIGNALS } from '../shared/local/ending-signals';
import { ownPackage } from '../shared/local/own-package';
import { assistVerbs } from './assist/verbs';
import { type CommandLine, earlierVerb, namedVerbs, regionGiven, setGiven } from './command-line';
import { environmentVerbs } from './environment/verbs';
import { EXIT, Interrupted, UsageError } from './exit';
import { hubVerbs } from './hub/verbs';
import { initVerbs } from './init/verbs';
import { launchVerbs } from './launch/verbs';
import { planVerbs } from './plan/verbs';
import { platformVerbs } from './platform/verbs';
import { reportError, usageText } from './report-error';
import { publishVerbs, runVerbs } from './runs/verbs';
import { sandboxVerbs } from './sandbox/verbs';
import { plainTerminal, processTerminal, type Terminal } from './terminal';
import { verifyVerbs } from './verify/verbs';

const GROUPS: Readonly<Record<string, readonly ((cli: CommandLine) => void)[]>> = {
  Run: [planVerbs, launchVerbs, runVerbs],
  Environment: [initVerbs, environmentVerbs, platformVerbs, verifyVerbs],
  Weights: [hubVerbs, publishVerbs],
  Tools: [assistVerbs, sandboxVerbs],
};

function common(command: Command): Command {
  return command
    .option('--environment <name|file>', 'environment, environment/team, or a descriptor file (.json)')
    .option('--region <region>', 'region; default: that of the named file, AWS_REGION or AWS profile', regionGiven)
    .option(
      '--set <path=value>',
      'override an option of the file before validation; null removes it (repeatable)',
      setGiven,
    )
    .option('--json', 'print one JSON document to stdout');
}

/** The whole command line. `done` is called once, with the exit code of the verb. */
export function program(terminal: Terminal, done: (code: number) => void): Command {
  const root = new Command('slipway')
    .description(
      'LLM training on Amazon SageMaker training jobs: checked before it spends, kept going until it is done',
    )
    .version(ownPackage().version)
    .exitOverride()
    .configureOutput({
      writeErr: (text) => terminal.err(text.trimEnd()),
      // `main` prints the message, in the same form as for all other errors.
      outputError: () => undefined,
      writeOut: (text) => terminal.out(text.trimEnd()),
    });
  const verb = (name: string, description: string, ...examples: string[]) =>
    common(
      root
        .command(name)
        .description(description)
        .addHelpText('after', ['\nExamples:', ...examples].join('\n  ')),
    );
  const run = (args: readonly string[], into: Terminal) => main(['node', 'slipway', ...args], into);
  const action: CommandLine['action'] =
    (load, name) =>
    async (...given) => {
      const call = (await load())[name] as (...all: unknown[]) => number | Promise<number>;
      // The last argument is the command itself.
      done(await call(...given.slice(0, -1), terminal));
    };
  for (const [group, verbs] of Object.entries(GROUPS)) {
    root.commandsGroup(`${group}:`);
    for (const add of verbs) add({ root, verb, action, terminal, done, run });
  }
  return root.helpCommand(true);
}

/** Whether this process has printed to stdout: then an interrupt adds no document. */
let processHasPrinted = false;

/** Runs the command line and returns its exit code; reports all errors. */
export async function main(argv: readonly string[], given: Terminal = processTerminal): Promise<number> {
  let code = 0;
  let hasPrinted = false;
  const { err, out } = plainTerminal(given);
  const terminal: Terminal = {
    err,
    out: (text) => {
      hasPrinted = true;
      processHasPrinted ||= given === processTerminal;
      out(text);
    },
  };
  try {
    const earlier = earlierVerb(argv[2]);
    if (earlier !== undefined) throw new UsageError(earlier);
    await program(terminal, (result) => {
      code = result;
    }).parseAsync([...argv]);
    return code;
  } catch (error) {
    // Commander also throws for help and version.
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT.done;
    const context = { asJson: wantsJson(argv), hasPrinted, file: argv[3] ?? '' };
    // Without a verb, the help has already been printed to stderr.
    if (error instanceof CommanderError && error.code === 'commander.help') {
      const [, , verb, unknown] = argv;
      if (verb !== 'help' || unknown === undefined) return EXIT.usage;
      return reportError(
        new UsageError(`help: must name a verb, got ${unknown}; see slipway --help`),
        context,
        terminal,
      );
    }
    return reportError(error instanceof CommanderError ? usageError(error, argv.slice(2)) : error, context, terminal);
  }
}

/** Reports an error that no verb could catch, and returns its exit code. */
export const reportUncaught = (error: unknown, argv: readonly string[]): number =>
  reportError(
    error,
    { asJson: wantsJson(argv), hasPrinted: processHasPrinted, file: '' },
    plainTerminal(processTerminal),
  );

/** With `--json`, a signal that no verb handles ends the process with a document. */
export function reportSignals(argv: readonly string[]): void {
  if (!wantsJson(argv)) return;
  for (const signal of ENDING_SIGNALS)
    process.on(signal, () => {
      const isHandled = process.listenerCount(signal) > 1;
      if (!isHandled) process.exit(reportUncaught(new Interrupted(`interrupted by ${signal}`), argv));
    });
}

/** Arguments after `--` are a command to run in the container. */
const wantsJson = (argv: readonly string[]): boolean => argv.slice(0, argv.indexOf('--') >>> 0).includes('--json');

function usageError(error: CommanderError, words: readonly string[]): UsageError {
  const verbs = namedVerbs(program({ out: () => undefined, err: () => undefined }, () => undefined));
  const verb = [words.slice(0, 2).join(' '), words[0]].find((name) => verbs.some((one) => one.name === name));
  return new UsageError(usageText(error, verb));
}
