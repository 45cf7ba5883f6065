import { type CommandLine, regionGiven } from '../command-line';
import type { SandboxOptions } from './sandbox';
import type { SimulateOptions } from './simulate';

/** Verbs on the embedded AWS and on the simulated one. */
export function sandboxVerbs(cli: CommandLine): void {
  simulateVerb(cli);
  sandboxVerb(cli);
}

/** Reads only the scenario, so none of the options of the other verbs apply. */
function simulateVerb(cli: CommandLine): void {
  cli.root
    .command('simulate <scenario>')
    .description('run the functions of the control plane against an in-memory AWS on a virtual clock')
    .option('--seed <n>', 'seed of the random parts of the scenario and of call durations (default: 1)')
    .option('--histories <n>', 'run n seeds; the first failing history is reduced to the shortest scenario that fails')
    .option('--html <file>', 'write a page that charts queue, runs, attempts and decisions over time')
    .option('--json', 'print one JSON document to stdout')
    .addHelpText(
      'after',
      '\nExamples:\n  slipway simulate scenarios/spot-lost.yaml --seed 7\n  slipway simulate scenarios/spot-lost.yaml --histories 100 --html histories.html',
    )
    .action(async (file: string, options: SimulateOptions) =>
      cli.done(await (await import('./simulate.js')).simulate(file, options, cli.terminal)),
    );
}

function sandboxVerb(cli: CommandLine): void {
  cli.root
    .command('sandbox <action> [file]')
    .description(
      'manage the embedded AWS (MiniStack with our SageMaker and Service Quotas): start, env, deploy FILE, status or stop',
    )
    .addHelpText(
      'after',
      `
Examples:
  eval "$(slipway sandbox start)"                     # starts the sandbox and configures this shell to use it
  eval "$(slipway sandbox env)"                       # configures another shell to use it
  slipway sandbox deploy environments/research.yaml --raise-quotas
  eval "$(slipway sandbox env --unset)"               # restores the shell; run it before slipway sandbox stop`,
    )
    .option('--state-dir <dir>', 'folder for all files of the sandbox; default: .slipway')
    .option('--python <file>', 'Python interpreter of the jobs')
    .option('--auth', 'enforce IAM and signatures, over TLS')
    .option('--persist', 'keep the state after stop')
    .option('--region <region>', 'region in the environment variables for clients', regionGiven)
    .option('--unset', 'with env: print the lines that unset the variables')
    .option('--raise-quotas', 'with deploy: first raise the quotas that are too low for the environment')
    .option('--json', 'print one JSON document to stdout')
    .action(async (action: string, file: string | undefined, options: SandboxOptions) =>
      cli.done(await (await import('./sandbox.js')).sandbox(action, file, options, cli.terminal)),
    );
}
