import type { CommandLine } from '../command-line';
import type { CommonOptions } from '../inputs';
import type { LockOptions } from './lock';
import type { QuotaOptions } from './quota';

/** Verbs on what an account holds for runs. */
export function environmentVerbs(cli: CommandLine): void {
  cli
    .verb(
      'preflight <file>',
      'check quotas and what the account must hold',
      'slipway preflight runs/llama2-13b.yaml --environment research\n  slipway preflight environments/research.yaml --region us-west-2',
    )
    .action(async (file: string, options: CommonOptions) =>
      cli.done(await (await import('./preflight.js')).preflight(file, options, cli.terminal)),
    );
  cli
    .verb(
      'quota <file|environment>',
      'every quota that a run or an environment touches',
      'slipway quota research --region us-west-2 --request\n  slipway quota runs/llama2-13b.yaml --environment research',
    )
    .option('--request', 'file the increases that are needed, once')
    .option('--wait', 'follow increases until the limits are applied; exit 1 when one is refused or was not requested')
    .action(async (file: string, options: QuotaOptions) =>
      cli.done(await (await import('./quota.js')).quota(file, options, cli.terminal)),
    );
  cli
    .verb(
      'lock <file>',
      "digests of the image's base in every region, from ECR, into <environment>.lock.yaml",
      'slipway lock environments/research.yaml\n  slipway lock environments/cuda.yaml --base 111122223333.dkr.ecr.{region}.amazonaws.com/nvidia/cuda:12.9',
    )
    .option('--base <image>', 'ECR image with its tag to build base cuda on; {region} stands for each region')
    .action(async (file: string, options: LockOptions) =>
      cli.done(await (await import('./lock.js')).lock(file, options, cli.terminal)),
    );
}
