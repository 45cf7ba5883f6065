import { dlcImageUri, huggingFaceImageUri, smpImageUri } from '../catalog/images';
import { acceleratorCount } from '../catalog/instances';
import { trainingGroupsOf } from '../spec/resolve-run';
import type { RunSpec } from '../spec/run-spec';

/** URI of the image a run names; undefined when there is none for it (rules `image/*` say why). */
export function imageUri(run: RunSpec, region: string, environmentImage?: string): string | undefined {
  const { kind, version = '', uri } = run.image;
  const type = trainingGroupsOf(run)[0]?.instanceType ?? '';
  switch (kind) {
    case 'environment':
      return environmentImage;
    case 'uri':
      return uri;
    case 'dlc':
      return dlcImageUri(version, region, acceleratorCount(type) > 0);
    case 'smp':
      return smpImageUri(version, region, type);
    case 'huggingface':
      return huggingFaceImageUri(version, region);
  }
}
