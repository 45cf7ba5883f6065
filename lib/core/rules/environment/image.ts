import { when } from '../../config/rule';
import { IMAGE_URI } from '../image';
import type { EnvironmentRule } from './environment-rule';

const oneImage: EnvironmentRule = {
  id: 'environment/image',
  level: 'error',
  what: 'The image is either built on a base or given by its URI, not both.',
  why: 'Otherwise one of the two would be silently ignored.',
  source: 'docs/reference/environment-file.md',
  reads: ['image'],
  check: ({ region, image: { uri } }, file) => [
    ...['image', `regions.${region}.image`].flatMap((at) => {
      const own = at === 'image' ? file.image : file.regions[region]?.image;
      return when(own?.uri !== undefined && own.base !== undefined, {
        path: `${at}.uri`,
        must: 'must not be given together with image.base',
        got: own?.uri,
        fix: 'keep one of the two',
      });
    }),
    ...when(uri !== undefined && !IMAGE_URI.test(uri), {
      path: 'image.uri',
      must: 'must be an image URI such as <account>.dkr.ecr.<region>.amazonaws.com/<repository>@sha256:<digest>',
      got: uri,
      fix: 'correct it',
    }),
  ],
};

const region: EnvironmentRule = {
  id: 'environment/image-region',
  level: 'warning',
  what: 'The image is in the region of the environment.',
  why: 'SageMaker pulls images from the region of the job.',
  source: 'https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-training-algo-dockerfile.html',
  reads: ['image'],
  check: ({ region: here, image: { uri } }) => {
    const there = /\.dkr\.ecr\.([a-z0-9-]+)\./.exec(uri ?? '')?.[1];
    return when(there !== undefined && there !== here, {
      path: 'image.uri',
      must: `must be in ${here}: SageMaker pulls from the region of the job`,
      got: uri,
      fix: `push it to ${here}, and set it under regions.${here}.image`,
    });
  },
};

const built: EnvironmentRule = {
  id: 'environment/image-build',
  level: 'error',
  what: 'The stack builds the image unless image.uri is set.',
  why: 'Otherwise the environment would have no image.',
  source: 'docs/reference/environment-file.md',
  reads: ['image'],
  check: ({ image: { build, uri } }) =>
    when(!uri && !build, {
      path: 'image.build',
      must: 'must be true without image.uri',
      got: build,
      fix: 'remove it, or set image.uri',
    }),
};

/** Rules for the training image. */
export const ENVIRONMENT_IMAGE_RULES: readonly EnvironmentRule[] = [oneImage, region, built];
