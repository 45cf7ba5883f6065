import {
  awsRepositories,
  dlcVersions,
  fullPytorchVersion,
  fullTransformersVersion,
  HUGGING_FACE_IMAGES,
  NEURON_REGIONS,
  NEURON_VERSIONS,
  NEURONX_REPOSITORY,
  PYTORCH_END_OF_PATCH,
  PYTORCH_PYTHON,
  parseEcrUri,
  SMP_PYTHON,
} from '../catalog/images/images';
import { SMP_REGIONS } from '../catalog/images/smddp';
import { acceleratorCount, findInstanceType } from '../catalog/instances/instances';
import { nearest } from '../catalog/nearest';
import { REGIONS } from '../catalog/regions';
import { orList } from '../config/issue';
import { instanceGroupsOf } from '../config/resolve-run';
import { type Finding, type Rule, regionOf, rule, when } from '../config/rule';
import type { ImageKind, RunSpec } from '../config/run-spec';
import { acceleratorKind, compareVersions, instanceTypeOfImage, pytorchOfImage } from '../distribution/image-version';

/** An image in any registry, with a tag, a digest, both or neither. */
export const IMAGE_URI =
  /^(\d{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?|[a-z0-9][a-z0-9.-]*(:\d+)?)\/[a-z0-9._/-]+(:[A-Za-z0-9._-]{1,128})?(@sha256:[0-9a-f]{64})?$/;

const ECR = /^\d{12}\.dkr\.ecr(-fips)?\.[a-z0-9-]+\.amazonaws\.com(\.cn)?\//;

/** Hosts that cannot run CUDA images for x86: Neuron devices, and GB200 with its Arm cores. */
const isForeign = (type: string) => acceleratorKind(type) === 'neuron' || type === 'ml.p6e-gb200.36xlarge';

const asksNeuron = (run: RunSpec) => run.image.kind === 'dlc' && acceleratorKind(instanceTypeOfImage(run)) === 'neuron';

/** Finding for a type that cannot run any CUDA build of AWS. PyTorch has Neuron builds for some versions. */
function foreign(run: RunSpec, type: string): Finding | Finding[] {
  const { kind, version } = run.image;
  if (kind === 'uri' || kind === 'environment') return [];
  if (asksNeuron(run))
    return when(!NEURON_VERSIONS.includes(fullPytorchVersion(version ?? '') ?? ''), 'image.version', {
      must: `must be ${orList(NEURON_VERSIONS)} on ${type}: there are no other Neuron builds of kind dlc`,
      fix: `use it, or set image.uri to an image of ${NEURONX_REPOSITORY.dlc}`,
    });
  const neuronx = NEURONX_REPOSITORY[kind === 'huggingface' ? kind : 'dlc'];
  const isNeuron = acceleratorKind(type) === 'neuron';
  return {
    path: 'image.kind',
    must: `must be uri or environment on ${type}: AWS's images of this kind are CUDA builds for x86`,
    fix: isNeuron ? `set image.uri to an image of ${neuronx}` : 'build an image for it and set image.uri',
  };
}

/**
 * Requirements of an instance type on CUDA and the EFA plugin inside AWS's images, as the range of PyTorch versions of suitable images.
 * Source: docs/facts/efa.md 1.3 and 1.4, retrieved 2026-11-20.
 */
const STACKS: readonly { types: RegExp; from?: string; below?: string; because: string }[] = [
  { types: /^ml\.p(2|3|3dn)\./, below: '2.9.0', because: 'CUDA 13 has no code for its GPUs' },
  { types: /^ml\.p5e?\.48xlarge$/, from: '2.1.0', because: 'its GPUs and EFA ask for CUDA 12 and NCCL 2.18' },
  { types: /^ml\.p5en\./, from: '2.6.0', because: 'older images carry aws-ofi-nccl 1.12, which does not know it' },
  { types: /^ml\.p6/, from: '2.7.1', because: 'Blackwell asks for CUDA 12.8 and aws-ofi-nccl 1.15' },
];

const suits = (version: string, { from, below }: (typeof STACKS)[number]): boolean =>
  (from === undefined || compareVersions(version, from) >= 0) &&
  (below === undefined || compareVersions(version, below) < 0);

const FACTS_DATE = '2026-11-20';

/** Versions of the kinds of images that AWS publishes; a kind that is absent has no versions. */
const VERSIONS: Readonly<Partial<Record<ImageKind, { known: readonly string[]; isKnown(version: string): boolean }>>> =
  {
    dlc: { known: dlcVersions(), isKnown: (version) => fullPytorchVersion(version) !== undefined },
    smp: { known: Object.keys(SMP_PYTHON), isKnown: (version) => version in SMP_PYTHON },
    huggingface: {
      known: Object.keys(HUGGING_FACE_IMAGES),
      isKnown: (version) => fullTransformersVersion(version) !== undefined,
    },
  };

function version({ image }: RunSpec): Finding[] {
  const { kind, version: given } = image;
  const path = 'image.version';
  const versions = VERSIONS[kind];
  if (!versions) return when(given !== undefined, path, { must: `must be omitted with kind ${kind}` });
  const { known, isKnown } = versions;
  if (given === undefined)
    return [{ path, must: `must be set with kind ${kind}`, fix: `use for example "${known[known.length - 1]}"` }];
  return when(!isKnown(given), path, {
    must: `must be a version with ${kind} images`,
    fix: `use ${orList(nearest(given, known, 4))}`,
  });
}

function uriKind({ image: { kind, version: given, uri } }: RunSpec): Finding[] {
  // Without a version, too little is known about an AWS image for further checks.
  if (VERSIONS[kind] && given === undefined) return [];
  const path = 'image.uri';
  return [
    ...when(kind === 'uri' && uri === undefined, path, {
      must: 'must be set with kind uri',
      fix: 'add the URI of the image',
    }),
    ...when(kind !== 'uri' && uri !== undefined, path, {
      must: 'must be used with kind uri',
      fix: 'set kind: uri, or remove it',
    }),
  ];
}

export const IMAGE_RULES: readonly Rule[] = [
  /** Findings about the version and the URI that a kind of image requires or does not allow. */
  rule('image/version', 'error, local', (run) => [...version(run), ...uriKind(run)]),
  rule('image/uri', 'error, local', (run) => {
    const { uri } = run.image;
    if (run.image.kind !== 'uri' || uri === undefined) return [];
    const pinned = /[@]sha256:|:[^/]+$/.test(uri) && !uri.endsWith(':latest');
    return [
      ...when(!IMAGE_URI.test(uri), 'image.uri', {
        must: 'must be an image URI such as <account>.dkr.ecr.<region>.amazonaws.com/<repository>@sha256:<digest>',
        fix: 'correct it',
      }),
      ...when(IMAGE_URI.test(uri) && !pinned, 'image.uri', {
        level: 'warning',
        must: 'must have a digest, or a tag that is not mutable',
        fix: 'pin it by digest',
      }),
    ];
  }),
  /** SageMaker pulls an image from Amazon ECR alone, and a job starts without credentials for other registries. */
  rule('image/outside-ecr', 'error, local', ({ image: { kind, uri } }) =>
    when(kind === 'uri' && uri !== undefined && !ECR.test(uri), 'image.uri', {
      must: 'must be an image in Amazon ECR',
      fix: 'push the image to Amazon ECR',
    }),
  ),
  rule('image/region', 'error', (run, context) => {
    const here = regionOf(context);
    const there = /\.dkr\.ecr\.([a-z0-9-]+)\./.exec(run.image.uri ?? '')?.[1];
    return when(here !== undefined && there !== undefined && here !== there, 'image.uri', {
      level: 'warning',
      must: `must be in the run's region ${here}: SageMaker pulls from the region of the job`,
      fix: `push it to ${here}`,
    });
  }),
  /** The roles of jobs may pull from every repository of the environment's account, and from those of AWS's images. */
  rule('image/repository', 'warning, may acknowledge', (run, { descriptor }) => {
    const image = run.image.kind === 'uri' ? parseEcrUri(run.image.uri ?? '') : undefined;
    // With a list of allowed images, the rule guardrails/images decides, and the roles have the repositories of the list.
    if (!image || !descriptor || descriptor.guardrails?.allowedImages || image.account === descriptor.account)
      return [];
    const isAws = awsRepositories(descriptor.region).some(
      (known) => known.account === image.account && known.repository === image.repository,
    );
    return when(!isAws, 'image.uri', {
      must: `must be in a repository of account ${descriptor.account} or of AWS's training images: the role of the job may pull from no other`,
      fix: `copy it into the account, or name ${image.repository} and the other images in use in guardrails.allowedImages of the environment`,
    });
  }),
  rule('image/processor', 'error', (run) => {
    const types = instanceGroupsOf(run.compute)
      .map((g) => g.instanceType)
      .filter((type) => findInstanceType(type));
    const gpu = types.some((type) => acceleratorCount(type) > 0);
    const full = fullPytorchVersion(run.image.version ?? '');
    const other = types.find(isForeign);
    if (other !== undefined) return foreign(run, other);
    if (types.length === 0 || gpu) return [];
    const gpuOnly =
      run.image.kind === 'smp' ||
      run.image.kind === 'huggingface' ||
      (run.image.kind === 'dlc' && full !== undefined && !(full in PYTORCH_PYTHON));
    return when(gpuOnly, 'image.kind', {
      must: `must have a CPU build for ${types[0]}`,
      got: `${run.image.kind} ${run.image.version ?? ''}`.trim(),
      fix: 'use kind dlc up to version "2.8.0", or a GPU type',
    });
  }),
  rule('image/stack', 'warning, may acknowledge', (run) => {
    const version = run.image.kind === 'dlc' || run.image.kind === 'huggingface' ? pytorchOfImage(run) : undefined;
    if (version === undefined) return [];
    return instanceGroupsOf(run.compute).flatMap(({ instanceType }) =>
      STACKS.filter((asks) => asks.types.test(instanceType) && !suits(version, asks)).map(
        ({ from, below, because }) => ({
          path: 'image.version',
          must: `must be PyTorch ${from ? `${from} or newer` : `before ${below}`} on ${instanceType}: ${because}`,
          fix: from ? 'use "2.13" where the library allows it' : 'use "2.8.0"',
        }),
      ),
    );
  }),
  rule('image/end-of-patch', 'warning, may acknowledge', (run) => {
    const pytorch = pytorchOfImage(run);
    const minor = pytorch?.split('.').slice(0, 2).join('.');
    if (run.image.kind !== 'dlc' || !pytorch || !minor) return [];
    if (asksNeuron(run))
      return when(NEURON_VERSIONS.includes(pytorch), 'image.version', {
        must: `must be an image that is still patched, which no Neuron build of kind dlc is (PyTorch ${orList(NEURON_VERSIONS)})`,
        fix: `set image.uri to an image of ${NEURONX_REPOSITORY.dlc}, or acknowledge image/end-of-patch`,
      });
    const end = PYTORCH_END_OF_PATCH[minor];
    // Nothing is known about a version that is newer than the table; image/version reports it.
    const isNewer = Object.keys(PYTORCH_END_OF_PATCH).every((known) => compareVersions(minor, known) > 0);
    if (isNewer || (end !== undefined && end >= FACTS_DATE)) return [];
    return {
      path: 'image.version',
      must: `must be an image that is still patched: PyTorch 2.10 or newer (${minor} got its last patch ${end ? `on ${end}` : 'before 2026'})`,
      fix: 'use "2.13" where the library allows it, or acknowledge image/end-of-patch',
    };
  }),
  rule('image/registry', 'error', (run, context) => {
    const here = regionOf(context);
    const { kind } = run.image;
    const regions = kind === 'smp' ? SMP_REGIONS : asksNeuron(run) ? NEURON_REGIONS : Object.keys(REGIONS);
    // For that library, smp-v2/region reports it.
    const isJudged =
      kind === 'dlc' || kind === 'huggingface' || (kind === 'smp' && run.distribution.library !== 'smp-v2');
    return when(here !== undefined && isJudged && !regions.includes(here), 'image.kind', {
      must: 'must be uri or environment in a region without a known registry of these images',
      got: `${kind} in ${here}`,
      fix: `use a region such as ${nearest(here ?? '', regions, 2).join(' or ')}`,
    });
  }),
];
