import { type App, Stack, type StackProps, Stage, type StageProps } from 'aws-cdk-lib';
import * as pipelines from 'aws-cdk-lib/pipelines';
import type { Construct } from 'constructs';
import { isDeployed } from './embedded-aws';
import { EnvironmentStack } from './environment-stack';
import type { EnvironmentToMake } from './read-environments';
import { environmentsOf, type SlipwayAppProps, slipwayApp } from './slipway-app';

export interface EnvironmentStageProps extends StageProps {
  /** Account of the stage. */
  readonly env: { readonly account: string };
  /** Environments of the stage; the account in their files is ignored. */
  readonly environments: readonly EnvironmentToMake[];
}

/** Environments in one account: a stage of a pipeline, with one stack per environment and Region. */
export class EnvironmentStage extends Stage {
  constructor(scope: Construct, id: string, { environments, ...props }: EnvironmentStageProps) {
    super(scope, id, props);
    for (const { spec, ...rest } of environments)
      new EnvironmentStack(this, `Slipway-${spec.name}-${spec.region}`, {
        spec: { ...spec, account: props.env.account },
        env: { account: props.env.account, region: spec.region },
        stackName: `Slipway-${spec.name}-${spec.region}`,
        ...rest,
      });
  }
}

/** Source of the project, and which stages of a pipeline need approval. */
export interface PipelineOptions {
  /** Source of the project: `pipelines.CodePipelineSource.connection('owner/repository', 'main', { connectionArn })`. */
  readonly source: pipelines.IFileSetProducer;
  /** Stages that require manual approval. @default - the last one of each environment */
  readonly approve?: readonly string[];
  /** Commands that produce the templates in cdk.out. @default - npm ci (without a package-lock.json, npm install), slipway validate for each environment file, cdk synth */
  readonly commands?: readonly string[];
}

export interface EnvironmentPipelineProps extends StackProps, PipelineOptions {
  /** Environments; each must have `accounts`, by stage. */
  readonly environments: readonly EnvironmentToMake[];
}

const COMMANDS = [
  'if [ -e package-lock.json ]; then npm ci; else npm install; fi',
  'for file in environments/*.yaml; do npx slipway validate "$file" || exit 1; done',
  'npx cdk synth',
];

/**
 * A pipeline of CDK Pipelines over the accounts that environment files name: one stage per account, in the order of `accounts`. Bootstrap
 * every account with `cdk bootstrap --trust <account of the pipeline> --cloudformation-execution-policies <policy>` first. Costs about 1
 * USD a month for the pipeline, 1 USD for its key, and the minutes of its builds.
 */
export class EnvironmentPipeline extends Stack {
  /** The pipeline. */
  public readonly pipeline: pipelines.CodePipeline;

  constructor(scope: Construct, id: string, props: EnvironmentPipelineProps) {
    super(scope, id, props);
    const stages = stagesOf(props.environments);
    const lasts = props.environments.flatMap(({ spec }) => Object.keys(spec.accounts ?? {}).slice(-1));
    const approve = props.approve ?? lasts;
    const unknown = approve.filter((name) => !stages.some((stage) => stage.name === name));
    if (unknown.length > 0)
      throw new Error(
        `${this.node.path}: approve: must name stages of accounts (${stages.map(({ name }) => name).join(', ')}), got ${unknown.join(', ')}`,
      );
    this.pipeline = new pipelines.CodePipeline(this, 'Pipeline', {
      crossAccountKeys: true,
      synth: new pipelines.ShellStep('Synth', {
        input: props.source,
        commands: [...(props.commands ?? COMMANDS)],
      }),
    });
    for (const { name, account, environments } of stages)
      this.pipeline.addStage(new EnvironmentStage(this, name, { env: { account }, environments }), {
        pre: approve.includes(name) ? [new pipelines.ManualApprovalStep('Approve')] : [],
      });
  }
}

/** The stages of all environments, in the order of `accounts`. Throws when two files name one stage differently, or contradict in order. */
function stagesOf(environments: readonly EnvironmentToMake[]) {
  const stages = new Map<string, { name: string; account: string; environments: EnvironmentToMake[] }>();
  for (const environment of environments) {
    const { name: file, accounts } = environment.spec;
    if (!accounts)
      throw new Error(
        `environment ${file}: accounts: must be given in a pipeline; write accounts: { dev: "...", prod: "..." }`,
      );
    for (const [name, account] of Object.entries(accounts)) {
      const stage = stages.get(name) ?? { name, account, environments: [] };
      if (stage.account !== account)
        throw new Error(
          `environment ${file}: accounts.${name}: must be ${stage.account}, as in the other environments, got ${account}; use one account for a stage`,
        );
      stages.set(name, { ...stage, environments: [...stage.environments, environment] });
    }
  }
  const orders = new Map(environments.map(({ spec }) => [spec.name, Object.keys(spec.accounts ?? {})]));
  return mergedOrder([...stages.keys()], [...orders]).flatMap((name) => stages.get(name) ?? []);
}

/** Stages in an order that agrees with that of every environment. */
function mergedOrder(left: string[], orders: (readonly [environment: string, stages: string[]])[]): string[] {
  if (left.length === 0) return [];
  const next = left.find((name) => orders.every(([, stages]) => stages.indexOf(name) <= 0));
  if (next === undefined) {
    const got = orders.flatMap(([name, stages]) => (stages.length > 1 ? [`${stages.join(', ')} in ${name}`] : []));
    throw new Error(
      `accounts: must have one order of stages in all environments, got ${got.join(' and ')}; reorder them in one file`,
    );
  }
  const others = (stages: string[]) => stages.filter((stage) => stage !== next);
  const rest = orders.map(([name, stages]) => [name, others(stages)] as const);
  return [next, ...mergedOrder(others(left), rest)];
}

/** Options of `slipwayPipeline`, in addition to the location of the environment files. */
export interface SlipwayPipelineProps extends SlipwayAppProps, PipelineOptions {
  /** Account of the pipeline itself. @default - the first of `accounts` */
  readonly account?: string;
  /** Region of the pipeline itself. @default - the Region of the first environment */
  readonly region?: string;
}

/**
 * Adds the stack `SlipwayPipeline` to an app, which deploys the environment files to their `accounts`. For the embedded AWS of `slipway
 * sandbox deploy`, which has one account, it adds the environments directly instead.
 *
 * ```ts
 * slipwayPipeline(new App(), { source: CodePipelineSource.connection('acme/training', 'main', { connectionArn }) });
 * ```
 * @throws when a file has an error or no accounts; nothing is added in that case
 */
export async function slipwayPipeline(
  app: App,
  props: SlipwayPipelineProps,
): Promise<EnvironmentPipeline | EnvironmentStack[]> {
  if (!isDeployed(app, 'pipeline')) return slipwayApp(app, props);
  const environments = await environmentsOf(app, props);
  const [first] = environments;
  const account = props.account ?? Object.values(first?.spec.accounts ?? {})[0];
  const region = props.region ?? first?.spec.region;
  const { source, approve, commands } = props;
  return new EnvironmentPipeline(app, 'SlipwayPipeline', {
    env: { account, region },
    environments,
    source,
    approve,
    commands,
  });
}
