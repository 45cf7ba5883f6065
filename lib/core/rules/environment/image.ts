import { when } from '../../config/rule';
import { IMAGE_URI } from '../image';
import { type EnvironmentRule, environmentRule } from './environment-rule';

export const ENVIRONMENT_IMAGE_RULES: readonly EnvironmentRule[] = [
  environmentRule('environment/image', 'error', ['image'], ({ region, image: { uri } }, file) => [
    ...['image', `regions.${region}.image`].flatMap((at) => {
      const own = at === 'image' ? file.image : file.regions[region]?.image;
      return when(own?.uri !== undefined && own.base !== undefined, `${at}.uri`, {
        must: 'must not be given together with image.base',
        got: own?.uri,
        fix: 'keep one of the two',
      });
    }),
    ...when(uri !== undefined && !IMAGE_URI.test(uri), 'image.uri', {
      must: 'must be an image URI such as <account>.dkr.ecr.<region>.amazonaws.com/<repository>@sha256:<digest>',
      fix: 'correct it',
    }),
  ]),
  environmentRule('environment/image-region', 'warning', ['image'], ({ region: here, image: { uri } }) => {
    const there = /\.dkr\.ecr\.([a-z0-9-]+)\./.exec(uri ?? '')?.[1];
    return when(there !== undefined && there !== here, 'image.uri', {
      must: `must be in ${here}: SageMaker pulls from the region of the job`,
      fix: `push it to ${here}, and set it under regions.${here}.image`,
    });
  }),
  environmentRule('environment/image-build', 'error', ['image'], ({ image: { build, uri } }) =>
    when(!uri && !build, 'image.build', {
      must: 'must be true without image.uri',
      fix: 'remove it, or set image.uri',
    }),
  ),
];
