import {
  dlcVersions,
  fullPytorchVersion,
  fullTransformersVersion,
  HUGGING_FACE_IMAGES,
  SMP_PYTHON,
} from '../catalog/images/images';
import { nearest } from '../catalog/nearest';
import { orList } from '../config/issue';
import { type Finding, when } from '../config/rule';
import type { ImageKind, RunSpec } from '../config/run-spec';

interface Versions {
  known: readonly string[];
  isKnown(version: string): boolean;
}

/** Versions of the kinds of images that AWS publishes; a kind that is absent has no versions. */
const VERSIONS: Readonly<Partial<Record<ImageKind, Versions>>> = {
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
  if (!versions)
    return when(given !== undefined, {
      path,
      must: `must be omitted with kind ${kind}`,
      got: given,
      fix: 'remove it',
    });
  const { known, isKnown } = versions;
  if (given === undefined)
    return [{ path, must: `must be set with kind ${kind}`, fix: `use for example "${known[known.length - 1]}"` }];
  return when(!isKnown(given), {
    path,
    must: `must be a version with ${kind} images`,
    got: given,
    fix: `use ${orList(nearest(given, known, 4))}`,
  });
}

function uriKind({ image: { kind, version: given, uri } }: RunSpec): Finding[] {
  // Without a version, too little is known about an AWS image for further checks.
  if (VERSIONS[kind] && given === undefined) return [];
  const path = 'image.uri';
  return [
    ...when(kind === 'uri' && uri === undefined, {
      path,
      must: 'must be set with kind uri',
      fix: 'add the URI of the image',
    }),
    ...when(kind !== 'uri' && uri !== undefined, {
      path,
      must: 'must be used with kind uri',
      got: uri,
      fix: 'set kind: uri, or remove it',
    }),
  ];
}

/** Findings about the version and the URI that a kind of image requires or does not allow. */
export const versionAndUri = (run: RunSpec): Finding[] => [...version(run), ...uriKind(run)];
