import { type CommandLine, modeOf } from '../command-line';
import { UsageError } from '../exit';
import type { Terminal } from '../terminal';
import type { LockOptions } from './lock';
import type { RegionOptions } from './regions';

interface PreflightOptions extends LockOptions, RegionOptions {
  lock?: boolean;
}

export function environmentVerbs(cli: CommandLine): void {
  cli
    .verb(
      'preflight [file]',
      'check quotas and other prerequisites in the account; or compare regions, or lock the base image',
      'slipway preflight runs/sagemaker/llama2-13b.yaml --environment research/nlp',
      'slipway preflight environments/research.yaml --region us-west-2',
      'slipway preflight runs/builtin/llama3-8b-fsdp.yaml --regions us-east-1,us-east-2,us-west-2',
      'slipway preflight environments/research.yaml --lock',
      'slipway preflight environments/cuda.yaml --lock --base 111122223333.dkr.ecr.{region}.amazonaws.com/nvidia/cuda:12.9',
    )
    .option(
      '--regions [a,b]',
      "rank regions by availability of the quotas, zones, images, prices and endpoint services that the file needs; default: those of the environment, or those with a known price for the run's instance types",
    )
    .option(
      '--lock',
      'write the digests of the base image in every region of an environment file, from ECR, to <environment>.lock.yaml',
    )
    .option(
      '--base <image>',
      'with --lock: base image in ECR, with tag, for base cuda; {region} stands for each region',
    )
    .action(async (file: string | undefined, options: PreflightOptions) =>
      cli.done(await runPreflight(file, options, cli.terminal)),
    );
  cli
    .verb(
      'quota <file|environment>',
      'show the quotas that a run or an environment uses',
      'slipway quota research --region us-west-2 --request\n  slipway quota runs/sagemaker/llama2-13b.yaml --environment research/nlp',
    )
    .option('--request', 'request the required increases, each once, after a confirmation')
    .option('--yes', 'request without a confirmation')
    .action(cli.action(() => import('./quota.js'), 'quota'));
}

async function runPreflight(file: string | undefined, options: PreflightOptions, terminal: Terminal): Promise<number> {
  const mode = modeOf(options, { '': [], regions: [], lock: ['base'] });
  if (mode === undefined) return (await import('./preflight.js')).preflight(file, options, terminal);
  if (file === undefined)
    throw new UsageError(`preflight: must be given <file> with --${mode}, got nothing; see slipway preflight --help`);
  if (mode === 'regions') return (await import('./regions.js')).rankRegions(file, options, terminal);
  return (await import('./lock.js')).lock(file, options, terminal);
}
