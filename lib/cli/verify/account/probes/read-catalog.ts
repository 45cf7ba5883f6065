import { type InstanceTypeInfo, paginateDescribeInstanceTypes } from '@aws-sdk/client-ec2';
import { BatchGetImageCommand, DescribeImagesCommand } from '@aws-sdk/client-ecr';
import { paginateGetProducts } from '@aws-sdk/client-pricing';
import { DescribeTrainingJobCommand, ListTrainingJobsCommand } from '@aws-sdk/client-sagemaker';
import { parseEcrUri, publishedBaseUri } from '../../../../core/catalog/images/images';
import { INSTANCE_TYPES, type InstanceType } from '../../../../core/catalog/instances/instances';
import { findPrice } from '../../../../core/catalog/prices/prices';
import { firstFive, holdsIf, type Probe, probe, type ReadWorld, unknown } from '../probe';

const MIB_PER_GIB = 1024;
/** Smaller price differences are ignored. */
const PRICE_TOLERANCE = 0.05;
/** Usable GPU memory is slightly below the value from EC2; a larger difference means a different GPU. */
const MEMORY_TOLERANCE = 0.1;

/** The accelerated types by their name in EC2. */
const ACCELERATED = new Map(
  INSTANCE_TYPES.filter(({ accelerator }) => accelerator).map((type) => [type.name.replace(/^ml\./, ''), type]),
);

/** Fields of the catalog that differ from EC2. */
function contradictions(type: InstanceType, ec2: InstanceTypeInfo): string[] {
  const gpu = ec2.GpuInfo?.Gpus?.[0];
  const pairs: [string, number | undefined, number | undefined][] = [
    ['vCPUs', type.vcpus, ec2.VCpuInfo?.DefaultVCpus],
    ['EFA interfaces', type.efaInterfaces, ec2.NetworkInfo?.EfaInfo?.MaximumEfaInterfaces ?? 0],
    ['GPUs', type.accelerator?.kind === 'gpu' ? type.accelerator.count : undefined, gpu?.Count],
  ];
  const wrong = pairs
    .filter(([, ours, theirs]) => ours !== undefined && theirs !== undefined && ours !== theirs)
    .map(([what, ours, theirs]) => `${type.name}: ${what} ${theirs}, not ${ours}`);
  const memory = (gpu?.MemoryInfo?.SizeInMiB ?? 0) / MIB_PER_GIB;
  const ours = type.accelerator?.memoryGiB ?? 0;
  if (memory > 0 && Math.abs(memory - ours) > ours * MEMORY_TOLERANCE)
    wrong.push(`${type.name}: GPU memory ${memory.toFixed(0)} GiB, not ${ours}`);
  return wrong;
}

interface PriceDocument {
  product?: { attributes?: Record<string, string> };
  terms?: { OnDemand?: Record<string, { priceDimensions?: Record<string, { pricePerUnit?: { USD?: string } }> }> };
}

/** Type and on-demand USD per hour from a price list document; undefined for rows without a price. */
export function priceOf(document: PriceDocument): { type: string; usd: number } | undefined {
  const type = document.product?.attributes?.instanceName ?? '';
  const prices = Object.values(document.terms?.OnDemand ?? {})
    .flatMap((term) => Object.values(term.priceDimensions ?? {}))
    .map((dimension) => Number(dimension.pricePerUnit?.USD ?? 0))
    .filter((usd) => usd > 0);
  const [usd] = prices;
  return type && usd !== undefined ? { type, usd } : undefined;
}

/** Undefined when ECR has the image, otherwise the reason. */
async function imageState({ ecr }: ReadWorld, uri: string): Promise<string | undefined> {
  const parts = parseEcrUri(uri);
  if (!parts) return 'it is not an ECR image';
  const imageId = parts.digest ? { imageDigest: parts.digest } : { imageTag: parts.tag };
  const { images = [], failures = [] } = await ecr.send(
    new BatchGetImageCommand({ registryId: parts.account, repositoryName: parts.repository, imageIds: [imageId] }),
  );
  return images.length > 0 ? undefined : (failures[0]?.failureReason ?? 'no such image');
}

const NOT_FOUND = 'ValidationException: Requested resource not found.';

export const CATALOG_PROBES: readonly Probe<ReadWorld>[] = [
  probe(
    'instance-facts',
    `the data of ${ACCELERATED.size} accelerated types, for those that EC2 has in the Region`,
    async (world) => {
      const wrong: string[] = [];
      let compared = 0;
      const filter = { Filters: [{ Name: 'instance-type', Values: [...ACCELERATED.keys()] }] };
      for await (const page of paginateDescribeInstanceTypes({ client: world.ec2 }, filter)) {
        for (const info of page.InstanceTypes ?? []) {
          const type = ACCELERATED.get(info.InstanceType as string);
          if (!type) continue;
          compared++;
          wrong.push(...contradictions(type, info));
        }
      }
      if (compared === 0) return unknown('EC2 has none of them in the Region');
      return holdsIf(wrong.length === 0, `${compared} compared; ${firstFive(wrong) || 'none differs'}`);
    },
  ),
  probe('prices', `catalog prices within ${PRICE_TOLERANCE * 100} % of the price list`, async (world) => {
    const match = (Field: string, Value: string) => ({ Type: 'TERM_MATCH' as const, Field, Value });
    const request = {
      ServiceCode: 'AmazonSageMaker',
      Filters: [
        match('productFamily', 'ML Instance'),
        match('regionCode', world.region),
        match('platoinstancetype', 'Training'),
      ],
    };
    const off: string[] = [];
    let compared = 0;
    for await (const page of paginateGetProducts({ client: world.pricing }, request)) {
      for (const text of page.PriceList ?? []) {
        const listed = priceOf(JSON.parse(String(text)) as PriceDocument);
        const ours = listed && findPrice(listed.type, world.region);
        if (!listed || !ours) continue;
        compared++;
        if (Math.abs(ours.usdPerHour / listed.usd - 1) > PRICE_TOLERANCE)
          off.push(`${listed.type}: $${listed.usd}, not $${ours.usdPerHour} (${ours.basis} of ${ours.asOf})`);
      }
    }
    if (compared === 0) return unknown('the price list has no row for the Region and a type in the catalog');
    return holdsIf(
      off.length === 0,
      `${compared} compared, ${off.length} differ${off.length > 0 ? `: ${firstFive(off)}` : ''}`,
    );
  }),
  probe('base-image', 'a published base image', async (world) => {
    const uri = publishedBaseUri('pytorch-2.13', world.region);
    if (!uri) return unknown(`the catalog has none for ${world.region}`);
    const missing = await imageState(world, uri);
    const name = uri.split('/').slice(1).join('/');
    return holdsIf(missing === undefined, missing ?? 'it exists', `${name} exists`);
  }),
  probe('training-image', 'the image of the descriptor is in ECR', async ({ descriptor, ecr }) => {
    const parts = parseEcrUri(descriptor?.trainingImageUri ?? '');
    if (!parts)
      return unknown(descriptor ? 'the descriptor contains no image in ECR' : 'the environment is not deployed');
    const imageId = parts.digest ? { imageDigest: parts.digest } : { imageTag: parts.tag };
    const found = await ecr
      .send(
        new DescribeImagesCommand({ registryId: parts.account, repositoryName: parts.repository, imageIds: [imageId] }),
      )
      .catch((error: Error) => {
        if (/NotFound/.test(error.name)) return undefined;
        throw error;
      });
    return holdsIf(found !== undefined, found ? `${parts.repository} has it` : `${parts.repository} does not have it`);
  }),
  probe('region-support', 'ListTrainingJobs succeeds', async ({ sagemaker, region }) => {
    await sagemaker.send(new ListTrainingJobsCommand({ MaxResults: 1 }));
    return holdsIf(true, 'it succeeded', `ListTrainingJobs succeeds in ${region}`);
  }),
  probe('describe-not-found', NOT_FOUND, async ({ sagemaker, now }) => {
    const TrainingJobName = `slipway-verify-no-such-job-${now().toString(36)}`;
    const error = await sagemaker.send(new DescribeTrainingJobCommand({ TrainingJobName })).then(
      () => new Error('Describe returned a job'),
      (thrown: Error) => thrown,
    );
    const seen = `${error.name}: ${error.message}`;
    return holdsIf(seen === NOT_FOUND, seen);
  }),
];
