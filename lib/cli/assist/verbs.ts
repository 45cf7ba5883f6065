import type { CommandLine } from '../command-line';
import type { McpOptions } from './mcp';

export function assistVerbs(cli: CommandLine): void {
  cli
    .verb(
      'import <job|arn|file>',
      'create a run file from a training job or a captured request',
      'slipway import llama-pretrain-2026-11-20-10-11-12-345 --region us-west-2 > run.yaml\n  slipway import request.json --json',
    )
    .action(cli.action(() => import('../import/import.js'), 'importJob'));
  toolVerbs(cli);
}

/** Their arguments are not those of runs and environments, so they have none of the common options. */
function toolVerbs(cli: CommandLine): void {
  const tools = cli.root.command('tools').description('for editors, shells and AI assistants: schema, completion, mcp');
  tools
    .command('schema <run|environment|answers>')
    .description('print the JSON Schema of a file, for editors, or of the --json output, for scripts')
    .option('--json', 'print one JSON document to stdout, as always')
    .addHelpText(
      'after',
      '\nExamples:\n  slipway tools schema run > run.schema.json\n  slipway tools schema answers > answers.schema.json',
    )
    .action(async (kind: string) => cli.done((await import('./schema.js')).schema(kind, cli.terminal)));
  tools
    .command('completion <shell> [words...]')
    .description('print the completion script of a shell: bash, zsh or fish')
    .addHelpText(
      'after',
      '\nExamples:\n  eval "$(slipway tools completion bash)"       # in ~/.bashrc; the same for zsh\n  slipway tools completion fish | source        # in ~/.config/fish/config.fish',
    )
    .action(async (shell: string, words: string[]) => {
      const { completion } = await import('./completion.js');
      cli.done(await completion(shell, words, cli));
    });
  tools
    .command('mcp')
    .description('start an MCP server on stdio with read, plan and dry-run verbs as tools')
    .option('--allow <launch,stop>', 'also provide tools that launch or stop runs')
    .addHelpText('after', '\nExamples:\n  slipway tools mcp\n  slipway tools mcp --allow launch,stop')
    .action(async (options: McpOptions) => {
      const { mcp } = await import('./mcp.js');
      cli.done(await mcp(options, cli.run, cli.terminal));
    });
}
