import { dlcImageUri, huggingFaceImageUri, neuronImageUri, smpImageUri } from '../catalog/images/images';
import type { RunSpec } from '../config/run-spec';
import { acceleratorKind, instanceTypeOfImage } from '../distribution/image-version';

/** URI of a run's image; undefined when there is none (the rules `image/*` report the reason). */
export function imageUri(run: RunSpec, region: string, environmentImage?: string): string | undefined {
  const { kind, version = '', uri } = run.image;
  const type = instanceTypeOfImage(run);
  const accelerator = acceleratorKind(type);
  switch (kind) {
    case 'environment':
      return environmentImage;
    case 'uri':
      return uri;
    case 'dlc':
      return accelerator === 'neuron'
        ? neuronImageUri(version, region)
        : dlcImageUri(version, region, accelerator === 'gpu');
    case 'smp':
      return smpImageUri(version, region, type);
    case 'huggingface':
      return huggingFaceImageUri(version, region);
  }
}
