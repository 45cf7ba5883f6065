import { Document, visit } from 'yaml';
import { CODE_IN_IMAGE } from '../../core/config/code-source';
import type { Descriptor } from '../../core/config/descriptor';
import { parseJson } from '../../core/config/formats/json';
import { plainJson, plainLine } from '../../core/config/formats/plain-text';
import { bareIssue, formatValue, type Issue } from '../../core/config/issue';
import { loadRun } from '../../core/config/load';
import { isFlatterThan, MAX_LEVELS } from '../../core/config/reading/limits';
import type { RunSpec } from '../../core/config/run-spec';
import { trainingJobRequest } from '../../core/job/training-request';
import { notCarriedBy } from './differences';
import { draftOf, regionOfImage } from './from-request';
import { type ForeignRequest, findRequest } from './read-request';
import type { Draft, NotCarried } from './rows';
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

/** Imports the JSON of a request, or of the response of DescribeTrainingJob; undefined for any other content. */
export function importText(text: string, context: ImportContext): Imported | undefined {
  const document = parseJson(text);
  const request = isFlatterThan(document, MAX_LEVELS) ? findRequest(document) : undefined;
  return request && importRequest(request, context);
}

export function importRequest(request: ForeignRequest, context: ImportContext): Imported {
  const { draft, remarks } = draftOf(request, context.trainerFiles);
  const region = context.region ?? context.descriptor?.region ?? regionOfImage(request) ?? 'us-west-2';
  const { issues, value: run } = loadRun(runFileText(draft, [], context.source));
  const remade = run && trainingJobRequest(planOf(run, region, context.descriptor));
  const notCarried = [...remarks, ...(remade ? notCarriedBy(request, remade) : [])];
  const runFile = runFileText(draft, notCarried, context.source);
  return { runFile, notCarried, issues: issues.map(bareIssue), run, region };
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
