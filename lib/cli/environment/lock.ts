import { existsSync, writeFileSync } from 'node:fs';
import { BatchGetImageCommand, ECRClient } from '@aws-sdk/client-ecr';
import { type EcrUri, parseEcrUri, publishedBaseUri } from '../../core/catalog/images/images';
import {
  EMPTY_LOCK,
  type ImageLock,
  imageLockText,
  type LockedBase,
  loadImageLock,
  lockFileOf,
} from '../../core/config/environment/image';
import { type EnvironmentSpec, resolveEnvironments } from '../../core/config/environment-file';
import { hasErrors } from '../../core/config/issue';
import { loadEnvironment } from '../../core/config/load';
import { checkEnvironment } from '../../core/rules/environment';
import { awsClient } from '../aws-client';
import { calling } from '../aws-errors';
import { EXIT, Refusal, UsageError } from '../exit';
import { type CommonOptions, readText } from '../inputs';
import { writing } from '../page-file';
import { json, type Terminal } from '../terminal';
import { refuseRunFile } from './environment-file';

export interface LockOptions extends CommonOptions {
  base?: string;
}

/** `slipway preflight FILE --lock`: reads the digest of the base image's tag from ECR in each region and writes `<environment>.lock.yaml`. */
export async function lock(file: string, options: LockOptions, terminal: Terminal): Promise<number> {
  const text = readText(file);
  refuseRunFile(file, text);
  const loaded = loadEnvironment(text, options.set);
  const issues = [...loaded.issues, ...(loaded.value ? checkEnvironment(loaded.value) : [])];
  if (!loaded.value || hasErrors(issues)) throw new Refusal(issues);
  const target = lockFileOf(file);
  const before = readLock(target);
  const specs = resolveEnvironments(loaded.value).filter(({ image }) => !image.uri);
  if (specs.length === 0)
    throw new UsageError(`${file}: must have a region whose image is built, got image.uri everywhere; nothing to lock`);
  const bases: ImageLock['bases'] = { ...before.bases };
  for (const spec of specs) {
    const { region, image } = spec;
    const found = await resolved(spec, options, before);
    bases[region] = { ...bases[region], [image.base]: found };
    if (!options.json) terminal.err(`${region} ${image.base}: ${found.image} is ${found.digest}`);
  }
  writing('lock', 'file', target, () => writeFileSync(target, imageLockText({ schema: 1, bases })));
  if (options.json) terminal.out(json({ file: target, bases }));
  else terminal.err(`wrote ${target}; the next cdk deploy builds from it`);
  return EXIT.done;
}

function readLock(target: string): ImageLock {
  if (!existsSync(target)) return EMPTY_LOCK;
  const loaded = loadImageLock(readText(target));
  if (!loaded.value) throw new Refusal(loaded.issues.map((i) => ({ ...i, message: `${target}: ${i.message}` })));
  return loaded.value;
}

async function resolved(spec: EnvironmentSpec, options: LockOptions, before: ImageLock): Promise<LockedBase> {
  const { base } = spec.image;
  const given = options.base?.replaceAll('{region}', spec.region);
  const image = given ?? publishedBaseUri(base, spec.region) ?? before.bases[spec.region]?.[base]?.image;
  const parts = image === undefined ? undefined : parseEcrUri(image);
  if (!image || !parts?.tag || parts.digest)
    throw new UsageError(
      `--base: must be an ECR image with its tag for image.base ${base} in ${spec.region}, got ${image ?? 'nothing'}; ` +
        'copy the image to a repository of the account and use its URI (`{region}` is replaced by each region)',
    );
  return { image, digest: await digestOf(parts, parts.tag), resolvedAt: new Date().toISOString() };
}

/** The digest that a tag currently refers to. */
async function digestOf({ account, region, repository }: EcrUri, tag: string): Promise<string> {
  const ecr = awsClient(ECRClient, { region });
  const doing = `asking ECR of ${region} for ${repository}:${tag} of account ${account}`;
  const answer = await calling(doing, () =>
    ecr.send(
      new BatchGetImageCommand({ registryId: account, repositoryName: repository, imageIds: [{ imageTag: tag }] }),
    ),
  );
  const digest = answer.images?.[0]?.imageId?.imageDigest;
  if (digest) return digest;
  const why = answer.failures?.[0]?.failureReason ?? 'no such image';
  throw new UsageError(
    `${repository}:${tag}: must exist in account ${account} in ${region}, got ${why}; check tag and region`,
  );
}
