/** The parts of a private ECR image URI: `<account>.dkr.ecr.<region>.<domain>/<repository>[:<tag>][@<digest>]`. */
export interface EcrUri {
  account: string;
  region: string;
  domain: string;
  repository: string;
  tag?: string;
  digest?: string;
}

/** The domain depends on the partition: amazonaws.com, amazonaws.com.cn, amazonaws.eu, c2s.ic.gov and others. */
const FORM =
  /^(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.([a-z0-9]+(?:\.[a-z0-9]+)+)\/([a-z0-9][a-z0-9._/-]*)(?::([A-Za-z0-9_][A-Za-z0-9._-]*))?(?:@(sha256:[0-9a-f]{64}))?$/;

/** Parses the URI of an image in a private ECR registry; undefined for any other text. */
export function parseEcrUri(uri: string): EcrUri | undefined {
  const [, account, region, domain, repository, tag, digest] = FORM.exec(uri) ?? [];
  return account && region && domain && repository ? { account, region, domain, repository, tag, digest } : undefined;
}

/** URI of the same image with the digest instead of the tag. */
export const ecrImageByDigest = ({ account, region, domain, repository }: EcrUri, digest: string): string =>
  `${account}.dkr.ecr.${region}.${domain}/${repository}@${digest}`;
