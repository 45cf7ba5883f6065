import { setTimeout as sleep } from 'node:timers/promises';
import {
  CloudFormationClient,
  DescribeStackDriftDetectionStatusCommand,
  DetectStackDriftCommand,
  paginateDescribeStackResourceDrifts,
  type StackResourceDrift,
} from '@aws-sdk/client-cloudformation';
import { textTable } from '../../core/config/formats/plain-text';
import { orList } from '../../core/config/issue';
import { itemsOf } from '../../shared/aws/pages';
import { awsClient } from '../aws-client';
import { calling, isMissingStack } from '../aws-errors';
import { environmentFileOf } from '../environment/deployed-needs';
import { callRegion } from '../environment/environment';
import { requireEnvironment } from '../environment/environment-file';
import { EXIT, ServiceError, UsageError } from '../exit';
import { type CommonOptions, readText } from '../inputs';
import { json, type Terminal } from '../terminal';
import { type BeyondTemplate, driftBeyondTemplates } from './drift-beyond';

/** Detection over two hundred resources takes one or two minutes. */
const POLL_MS = 5000;
const MAX_POLLS = 120;
/** Name of the entry for resources that CloudFormation could not read. */
const EVERY_RESOURCE = 'every resource of the stack';

interface ResourceDrift {
  id: string;
  type: string;
  status: string;
  differences: { path: string; expected: string; actual: string }[];
}

interface StackDrift {
  region: string;
  stack: string;
  resources: ResourceDrift[];
  /** What CloudFormation does not cover; `ok` is null if it could not be read. */
  beyond: BeyondTemplate[];
}

/**
 * `slipway drift ENVIRONMENT`: shows differences from the deployed template, and changes that CloudFormation does not cover. Exit 1 if
 * there are any.
 */
export async function drift(environment: string, options: CommonOptions, terminal: Terminal): Promise<number> {
  if (!/^[a-z][a-z0-9]{0,11}$/.test(environment))
    throw new UsageError(
      `drift: must be the name of an environment, got ${environment}; write slipway drift research --region us-west-2`,
    );
  const stacks: StackDrift[] = [];
  for (const region of await regionsOf(environment, options)) stacks.push(await driftIn(environment, region));
  const ok = stacks.every(({ resources, beyond }) => resources.length === 0 && beyond.every((one) => one.ok !== false));
  if (options.json) terminal.out(json({ ok, stacks }));
  else for (const stack of stacks) printDrift(stack, terminal);
  return ok ? EXIT.done : EXIT.refused;
}

/** The region that is given, otherwise those of the environment's file below environments/, otherwise that of `callRegion`. */
async function regionsOf(environment: string, options: CommonOptions): Promise<string[]> {
  const file = options.region === undefined ? environmentFileOf(environment) : undefined;
  if (!file) return [await callRegion(options)];
  return requireEnvironment(file, readText(file), options).specs.map(({ region }) => region);
}

async function driftIn(environment: string, region: string): Promise<StackDrift> {
  const stack = `Slipway-${environment}-${region}`;
  const [{ resources, unread }, beyond] = await Promise.all([
    resourceDrifts(stack, region),
    driftBeyondTemplates(environment, region),
  ]);
  return { region, stack, resources, beyond: [...unread, ...beyond] };
}

/**
 * CloudFormation reads each resource with the caller's permissions: resources that it could not read are listed together with the drifts.
 */
async function resourceDrifts(
  stack: string,
  region: string,
): Promise<{ resources: ResourceDrift[]; unread: BeyondTemplate[] }> {
  const client = awsClient(CloudFormationClient, { region, maxAttempts: 5 });
  const missing = new UsageError(
    `drift: must be an environment of ${region}, got no stack ${stack}; deploy it first, or use another region`,
  );
  return calling(`detecting drift of ${stack}`, async () => {
    const detail = await detect(client, stack);
    const pages = paginateDescribeStackResourceDrifts(
      { client },
      { StackName: stack, StackResourceDriftStatusFilters: ['MODIFIED', 'DELETED'] },
    );
    const resources = await itemsOf(pages, ({ StackResourceDrifts }) => StackResourceDrifts?.map(driftOf));
    return { resources, unread: detail ? [{ what: EVERY_RESOURCE, ok: null, detail }] : [] };
  }).catch((error: Error) => {
    throw isMissingStack(error.cause) ? missing : error;
  });
}

/** Undefined when every resource was compared, otherwise CloudFormation's message about the others. */
async function detect(client: CloudFormationClient, StackName: string): Promise<string | undefined> {
  const { StackDriftDetectionId } = await client.send(new DetectStackDriftCommand({ StackName }));
  for (let poll = 0; poll < MAX_POLLS; poll++) {
    const { DetectionStatus, DetectionStatusReason } = await client.send(
      new DescribeStackDriftDetectionStatusCommand({ StackDriftDetectionId }),
    );
    if (DetectionStatus === 'DETECTION_COMPLETE') return undefined;
    // The detection is incomplete, but the drifts of single resources are available.
    if (
      DetectionStatus === 'DETECTION_FAILED' &&
      /Failed to detect drift on resource/.test(DetectionStatusReason ?? '')
    )
      return DetectionStatusReason;
    if (DetectionStatus === 'DETECTION_FAILED')
      throw new ServiceError(`drift of ${StackName}: must be detected, got ${DetectionStatusReason}; try again`);
    await sleep(POLL_MS);
  }
  throw new ServiceError(`drift of ${StackName}: must be detected within ten minutes; try again`);
}

const driftOf = (resource: StackResourceDrift): ResourceDrift => ({
  id: resource.LogicalResourceId ?? '',
  type: resource.ResourceType ?? '',
  status: resource.StackResourceDriftStatus ?? '',
  differences: (resource.PropertyDifferences ?? []).map(({ PropertyPath, ExpectedValue, ActualValue }) => ({
    path: PropertyPath ?? '',
    expected: ExpectedValue ?? '',
    actual: ActualValue ?? '',
  })),
});

function printDrift({ stack, resources, beyond }: StackDrift, terminal: Terminal): void {
  const rows = resources.flatMap(({ id, type, status, differences }) =>
    differences.length === 0
      ? [[id, type, status.toLowerCase(), '', '']]
      : differences.map(({ path, expected, actual }) => [id, type, path, expected, actual]),
  );
  const compared = beyond.some(({ what }) => what === EVERY_RESOURCE)
    ? ', for the properties that CloudFormation can compare'
    : '';
  terminal.out(
    rows.length === 0
      ? `${stack}: matches its template${compared}`
      : textTable(['resource', 'type', 'property', 'template', 'account'], rows),
  );
  const word = (ok: boolean | null) => (ok === null ? 'not known' : ok ? 'ok' : 'differs');
  terminal.out(
    textTable(
      ['not in the template', 'verdict', 'found'],
      beyond.map((one) => [one.what, word(one.ok), one.detail]),
    ),
  );
  const wrong = [...resources.map(({ id }) => id), ...beyond.filter(({ ok }) => ok === false).map(({ what }) => what)];
  if (wrong.length > 0) terminal.err(`${stack}: differs in ${orList(wrong, 'and')}`);
}
