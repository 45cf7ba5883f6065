import { GetObjectCommand, HeadObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import type { Descriptor } from '../../core/config/descriptor';
import { teamPageKey } from '../../core/contracts/storage';
import { awsClient } from '../aws-client';
import { isDenied, serviceError } from '../aws-errors';
import { EXIT, UsageError } from '../exit';
import { json, type Terminal } from '../terminal';
import { readTeams } from './read-teams';
import type { TeamOptions } from './team';

/** Validity of a link; it also ends with the credentials that signed it. */
const LINK_SECONDS = 3600;

interface PageLink {
  team: string;
  url: string;
  /** When the page was written, ISO 8601. */
  writtenAt: string | null;
}

/**
 * `slipway team ENVIRONMENT --link [--team T]`: prints a link to the page that the control plane publishes, one line for each team. The
 * caller's own credentials sign it, so that it opens nothing that the caller may not read.
 */
export async function pageLink(environment: string, options: TeamOptions, terminal: Terminal): Promise<number> {
  const { region, descriptors } = await readTeams(environment, options);
  const client = awsClient(S3Client, { region });
  const found = await Promise.all(descriptors.map((descriptor) => findLink(client, descriptor)));
  const links = found.flatMap((link) => link ?? []);
  const missing = descriptors.flatMap(({ team }, i) => (found[i] ? [] : [team]));
  if (links.length === 0)
    throw new UsageError(
      `--link: must have a page that you may read, got none of team ${missing.join(', ')}; the control plane writes it within five minutes of a deployment`,
    );
  if (options.json) terminal.out(json({ links }));
  else for (const { url } of links) terminal.out(url);
  for (const { team, writtenAt } of links) terminal.err(`${team}: as of ${writtenAt ?? 'an unknown time'}`);
  for (const team of missing) terminal.err(`${team}: no page that you may read`);
  terminal.err(
    'a link opens for everyone who has it, for an hour at most and no longer than your credentials are valid',
  );
  return EXIT.done;
}

/** Undefined when there is no page. */
async function findLink(client: S3Client, { team, artifactBucket: Bucket }: Descriptor): Promise<PageLink | undefined> {
  const place = { Bucket, Key: teamPageKey(team) };
  try {
    const { LastModified } = await client.send(new HeadObjectCommand(place));
    const url = await getSignedUrl(client, new GetObjectCommand(place), { expiresIn: LINK_SECONDS });
    return { team, url, writtenAt: LastModified?.toISOString() ?? null };
  } catch (error) {
    // S3 answers 403 for a missing object to callers who may not list the bucket.
    if (isDenied(error) || (error as Error).name === 'NotFound') return undefined;
    throw serviceError(`reading s3://${Bucket}/${place.Key}`, error);
  }
}
