import type { Command } from 'commander';
import type { Names } from './completion';
import type { Terminal } from './terminal';

/** Loaded when a name is completed: every start of a shell and every completed verb goes without. */
const NAMES: Names = {
  environments: async () => (await import('./account-names.js')).accountNames.environments(),
  runs: async (options) => (await import('./account-names.js')).accountNames.runs(options),
};

/** It takes none of the options of the other verbs: its words are those of another call. */
export function completionVerb(root: Command, terminal: Terminal, done: (code: number) => void): void {
  root
    .command('completion <shell> [words...]')
    .description('print the completion script of a shell: bash, zsh or fish')
    .addHelpText(
      'after',
      '\nExamples:\n  eval "$(slipway completion bash)"       # in ~/.bashrc; zsh likewise\n  slipway completion fish | source        # in ~/.config/fish/config.fish',
    )
    .action(async (shell: string, words: string[]) => {
      const { completion } = await import('./completion.js');
      done(await completion(shell, words, root, NAMES, terminal));
    });
}
