import { Document, parse, visit } from 'yaml';
import { CODE_IN_IMAGE } from '../../core/config/code-source';
import type { Descriptor } from '../../core/config/descriptor';
import { plainJson, plainLine } from '../../core/config/formats/plain-text';
import { bareIssue, formatValue, type Issue } from '../../core/config/issue';
import { loadRun } from '../../core/config/load';
import { isTooDeep } from '../../core/config/reading/yaml-file';
import type { RunSpec } from '../../core/config/run-spec';
import { trainingJobRequest } from '../../core/job/training-request';
import { lastCommand, ofCommand } from './command-line';
import { notCarriedBy } from './differences';
import { draftOf, regionOfImage } from './from-request';
import { type ForeignRequest, findRequest } from './read-request';
import { draftOfRecipe, isRecipe } from './recipe';
import { type Draft, type Drafted, filled, inOrder, type NotCarried } from './rows';
import type { TrainerFiles } from './start';

/** A run file that was created from an existing job. */
export interface Imported {
  /** YAML; values that were not imported are comments. */
  runFile: string;
  notCarried: NotCarried[];
  /** Schema errors of the file, which prevent further checks. */
  issues: Issue[];
  run?: RunSpec;
  region: string;
}

/**
 * The source, and the environment to compare with; without an environment, all values that an environment determines are listed as
 * differences.
 */
export interface ImportContext {
  /** Source as given by the user: a job, an ARN or a file. */
  source: string;
  descriptor?: Descriptor;
  region?: string;
  /** Files with the script and distribution of an SDK v3 job. @default - not known */
  trainerFiles?: TrainerFiles;
}

/** Placeholder when a command line contains no cluster: one host, whose type the user must set. */
const UNKNOWN_TYPE = 'ml.p4d.24xlarge';

/**
 * Imports a file: a request or the response of DescribeTrainingJob (JSON or YAML), a HyperPod recipe, or the command line that starts
 * training. Undefined for any other content.
 */
export function importText(text: string, context: ImportContext): Imported | undefined {
  const document = structureOf(text);
  const request = findRequest(document);
  if (request) return importRequest(request, context);
  if (isRecipe(document)) return finish(draftOfRecipe(document), context);
  const drafted = typeof document === 'object' && document !== null ? undefined : ofScript(text);
  return drafted && finish(drafted, context);
}

/** Parses a JSON or YAML text; undefined for other texts. Never throws. */
function structureOf(text: string): unknown {
  try {
    return isTooDeep(text) ? undefined : parse(text, { logLevel: 'silent' });
  } catch {
    return undefined;
  }
}

/** The last command of a shell script with a known program. */
function ofScript(text: string): Drafted | undefined {
  const lines = text.replace(/\\\r?\n/g, ' ').split('\n');
  const command = lastCommand(lines.filter((line) => !/^\s*#/.test(line)));
  if (!command) return undefined;
  const { draft, remarks } = ofCommand(command, './src', 'command');
  const why = `a command line contains no instance type; ${UNKNOWN_TYPE} is a placeholder: set compute.instanceType`;
  return {
    draft: inOrder({
      ...filled(draft),
      name: 'imported',
      compute: { instanceType: UNKNOWN_TYPE, instanceCount: command.hosts ?? 1 },
      checkpoints: { mode: 'none' },
    }),
    remarks: [...remarks, { field: 'instance type', value: '(not set)', why }],
  };
}

/** The run file of a CreateTrainingJob request. */
export function importRequest(request: ForeignRequest, context: ImportContext): Imported {
  const drafted = draftOf(request, context.trainerFiles);
  const region = context.region ?? context.descriptor?.region ?? regionOf(request) ?? 'us-west-2';
  const { value: run } = loadRun(runFileText(drafted.draft, [], context.source));
  const remade = run ? trainingJobRequest(planOf(run, region, context.descriptor)) : {};
  const compared = run ? notCarriedBy(request, remade) : [];
  return finish({ draft: drafted.draft, remarks: [...drafted.remarks, ...compared] }, context, region);
}

function finish({ draft, remarks }: Drafted, context: ImportContext, from?: string): Imported {
  const runFile = runFileText(draft, remarks, context.source);
  const { issues, value: run } = loadRun(runFile);
  const region = context.region ?? context.descriptor?.region ?? from ?? 'us-west-2';
  return { runFile, notCarried: remarks, issues: issues.map(bareIssue), run, region };
}

function regionOf({ RoleArn: _role, AlgorithmSpecification, ...request }: ForeignRequest): string | undefined {
  const plan = /^arn:aws[a-z-]*:sagemaker:([a-z0-9-]+):/.exec(request.ResourceConfig?.TrainingPlanArn ?? '')?.[1];
  return regionOfImage(AlgorithmSpecification?.TrainingImage ?? '') ?? plan;
}

/** An environment without settings, so that all values from an environment are reported as differences. */
const NO_ENVIRONMENT: Descriptor = {
  schemaVersion: 1,
  name: 'imported',
  team: 'imported',
  partition: 'aws',
  account: '000000000000',
  region: 'us-west-2',
  executionRoleArn: 'arn:aws:iam::000000000000:role/imported',
  dataBucket: 'imported-data',
  checkpointBucket: 'imported-checkpoints',
  artifactBucket: 'imported-artifacts',
  subnetIds: [],
  securityGroupIds: [],
};

function planOf(run: RunSpec, region: string, descriptor = NO_ENVIRONMENT): Parameters<typeof trainingJobRequest>[0] {
  const { source, sha256 = null, builtin } = run.code;
  return {
    run,
    descriptor,
    region,
    runId: run.name,
    attempt: 1,
    ...(!builtin && source !== CODE_IN_IMAGE && { code: { uri: source, sha256 } }),
    driver: { uri: `s3://${descriptor.artifactBucket}/drivers/`, hash: '' },
    configHash: '',
    resumeFrom: '',
    restartSecret: '',
  };
}

/** The text of a run file: a comment with the source and the values that were not imported, followed by the options. */
function runFileText(draft: Draft, notCarried: readonly NotCarried[], source: string): string {
  const comments = [
    `Imported from ${plainLine(source)}.`,
    ...(notCarried.length > 0 ? ['Not carried over:'] : []),
    ...notCarried.map(({ field, value, why }) => `  ${plainLine(field)} = ${formatValue(value)}: ${plainLine(why)}`),
  ];
  const head = comments.map((line) => `# ${line}`.trimEnd()).join('\n');
  return `${head}\n${yamlOf(draft)}`;
}

/** Texts with characters that are not visible are quoted and escaped, because a terminal does not receive these characters. */
function yamlOf(draft: Draft): string {
  const document = new Document(draft);
  visit(document, {
    Scalar: (_, scalar) => {
      if (typeof scalar.value === 'string' && plainJson(scalar.value) !== scalar.value) scalar.type = 'QUOTE_DOUBLE';
    },
  });
  return plainJson(document.toString({ lineWidth: 0 }));
}
