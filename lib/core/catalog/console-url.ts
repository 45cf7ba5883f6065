import { REGIONS } from './regions';

/**
 * Domains of the console by partition. https://docs.aws.amazon.com/govcloud-us/latest/UserGuide/configure-account.html, 2026-11-28; that of China
 * as open-source tools that sign in to the console have it.
 */
const DOMAINS: Readonly<Record<string, string>> = {
  'aws-cn': 'console.amazonaws.cn',
  'aws-us-gov': 'console.amazonaws-us-gov.com',
};

/** Page of a job in the AWS console. */
export function jobConsoleUrl(region: string, kind: 'training' | 'processing', jobName: string): string {
  const host = `${region}.${DOMAINS[REGIONS[region]?.partition ?? ''] ?? 'console.aws.amazon.com'}`;
  // encodeURIComponent throws for half of a surrogate pair, which only a hostile record has.
  const name = encodeURIComponent(jobName.replace(/\p{Cs}/gu, '\ufffd'));
  const list = kind === 'training' ? 'jobs' : 'processing-jobs';
  return `https://${host}/sagemaker/home?region=${region}#/${list}/${name}`;
}
