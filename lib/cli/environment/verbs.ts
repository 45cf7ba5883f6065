import type { CommandLine } from '../command-line';
import type { CommonOptions } from '../inputs';
import type { LockOptions } from './lock';
import type { QuotaOptions } from './quota';

/** Verbs on resources and quotas that an account has for runs. */
export function environmentVerbs(cli: CommandLine): void {
  cli
    .verb(
      'preflight [file]',
      'check quotas and other prerequisites in the account',
      'slipway preflight runs/llama2-13b.yaml --environment research\n  slipway preflight environments/research.yaml --region us-west-2',
    )
    .action(async (file: string | undefined, options: CommonOptions) =>
      cli.done(await (await import('./preflight.js')).preflight(file, options, cli.terminal)),
    );
  cli
    .verb(
      'quota <file|environment>',
      'show the quotas that a run or an environment uses',
      'slipway quota research --region us-west-2 --request\n  slipway quota runs/llama2-13b.yaml --environment research',
    )
    .option('--request', 'request the required increases, each once, after a confirmation')
    .option('--yes', 'request without a confirmation')
    .option('--wait', 'wait until the increases are applied; exits with 1 if one is denied or was not requested')
    .action(async (file: string, options: QuotaOptions) =>
      cli.done(await (await import('./quota.js')).quota(file, options, cli.terminal)),
    );
  cli
    .verb(
      'lock <file>',
      'write the digests of the base image in every region, from ECR, to <environment>.lock.yaml',
      'slipway lock environments/research.yaml\n  slipway lock environments/cuda.yaml --base 111122223333.dkr.ecr.{region}.amazonaws.com/nvidia/cuda:12.9',
    )
    .option('--base <image>', 'base image in ECR, with tag, for base cuda; {region} stands for each region')
    .action(async (file: string, options: LockOptions) =>
      cli.done(await (await import('./lock.js')).lock(file, options, cli.terminal)),
    );
}
