import { type CommandLine, regionGiven } from '../command-line';

export function sandboxVerbs(cli: CommandLine): void {
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
  eval "$(slipway sandbox env --unset)"               # restores the shell`,
    )
    .option('--state-dir <dir>', 'folder for all files of the sandbox; default: in ~/.local/state/slipway')
    .option('--python <file>', 'Python interpreter of the jobs')
    .option('--auth', 'enforce IAM and signatures, over TLS')
    .option('--region <region>', 'region in the environment variables for clients', regionGiven)
    .option('--unset', 'with env: print the lines that unset the variables')
    .option('--raise-quotas', 'with deploy: first raise the quotas that are too low for the environment')
    .option('--json', 'print one JSON document to stdout')
    .action(cli.action(() => import('./sandbox.js'), 'sandbox'));
}
