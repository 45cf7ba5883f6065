// Registry accounts of the Deep Learning Containers and of SMP v2 by
// region. Sources: aws/sagemaker-python-sdk@a24812666 image_uri_config; aws/deep-learning-containers@e0ecedea6a;
// aws-cdk-lib 2.276.0 region-info. Retrieved 2026-11-20.

/** Format of region names. */
export const REGION_FORM = /^[a-z]{2,4}(-[a-z]+)+-\d$/;

interface RegionFacts {
  /** Account of the registry of the Deep Learning Containers. */
  dlcAccount: string;
  /** Account of the SMP v2 registry; absent when SMP v2 is not available. */
  smpAccount?: string;
  partition: string;
  /** DNS suffix of ECR. */
  domain: string;
}

const AWS = { partition: 'aws', domain: 'amazonaws.com' };
/** Regions whose registries have the accounts of the first ones. */
const SHARED = { dlcAccount: '763104351884', smpAccount: '658645717510', ...AWS };

/** Regions with Deep Learning Containers, by name. */
export const REGIONS: Readonly<Record<string, RegionFacts>> = {
  'af-south-1': { dlcAccount: '626614931356', ...AWS },
  'ap-east-1': { dlcAccount: '871362719292', ...AWS },
  'ap-east-2': { dlcAccount: '975050140332', ...AWS },
  'ap-northeast-1': SHARED,
  'ap-northeast-2': SHARED,
  'ap-northeast-3': { ...SHARED, dlcAccount: '364406365360' },
  'ap-south-1': SHARED,
  'ap-south-2': { dlcAccount: '772153158452', ...AWS },
  'ap-southeast-1': SHARED,
  'ap-southeast-2': SHARED,
  'ap-southeast-3': { dlcAccount: '907027046896', ...AWS },
  'ap-southeast-4': { dlcAccount: '457447274322', ...AWS },
  'ap-southeast-5': { dlcAccount: '550225433462', ...AWS },
  'ap-southeast-6': { dlcAccount: '633930458069', ...AWS },
  'ap-southeast-7': { dlcAccount: '590183813437', ...AWS },
  'ca-central-1': SHARED,
  'ca-west-1': { dlcAccount: '204538143572', ...AWS },
  'cn-north-1': { dlcAccount: '727897471807', partition: 'aws-cn', domain: 'amazonaws.com.cn' },
  'cn-northwest-1': { dlcAccount: '727897471807', partition: 'aws-cn', domain: 'amazonaws.com.cn' },
  'eu-central-1': SHARED,
  'eu-central-2': { dlcAccount: '380420809688', ...AWS },
  'eu-north-1': SHARED,
  'eu-south-1': { dlcAccount: '692866216735', ...AWS },
  'eu-south-2': { dlcAccount: '503227376785', ...AWS },
  'eu-west-1': SHARED,
  'eu-west-2': SHARED,
  'eu-west-3': SHARED,
  'eusc-de-east-1': { dlcAccount: '204133271717', partition: 'aws-eusc', domain: 'amazonaws.eu' },
  'il-central-1': { dlcAccount: '780543022126', ...AWS },
  'me-central-1': { dlcAccount: '914824155844', ...AWS },
  'me-south-1': { dlcAccount: '217643126080', ...AWS },
  'me-west-1': { dlcAccount: '124382933778', ...AWS },
  'mx-central-1': { dlcAccount: '637423239942', ...AWS },
  'sa-east-1': SHARED,
  'us-east-1': SHARED,
  'us-east-2': SHARED,
  'us-gov-east-1': { dlcAccount: '446045086412', partition: 'aws-us-gov', domain: 'amazonaws.com' },
  'us-gov-west-1': { dlcAccount: '442386744353', partition: 'aws-us-gov', domain: 'amazonaws.com' },
  'us-iso-east-1': { dlcAccount: '886529160074', partition: 'aws-iso', domain: 'c2s.ic.gov' },
  'us-isob-east-1': { dlcAccount: '094389454867', partition: 'aws-iso-b', domain: 'sc2s.sgov.gov' },
  'us-isof-east-1': { dlcAccount: '303241398832', partition: 'aws-iso-f', domain: 'csp.hci.ic.gov' },
  'us-isof-south-1': { dlcAccount: '454834333376', partition: 'aws-iso-f', domain: 'csp.hci.ic.gov' },
  'us-west-1': SHARED,
  'us-west-2': SHARED,
};

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
