import { z } from 'zod';
import { functionArn } from '../run/formats';
import { unique } from './formats';

/** Section `image`. */
export const image = z.strictObject({
  base: z.enum(['pytorch-2.13', 'smp-2.8.0', 'cuda']).optional().meta({
    description:
      'Base of the image: an AWS image with PyTorch or the SageMaker model parallel library, to which a few layers are added, or a full build with the EFA installer (cuda).',
    default: 'pytorch-2.13',
  }),
  build: z.boolean().optional().meta({
    description: 'Whether the stack builds the image with CodeBuild in the account.',
    default: true,
  }),
  uri: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .meta({
      description: 'Existing image in Amazon ECR, instead of an image that the stack builds. Default: none.',
      examples: ['111122223333.dkr.ecr.us-west-2.amazonaws.com/training:1.0'],
    }),
  credentialsProviders: unique(z.array(functionArn))
    .optional()
    .meta({
      description:
        'Lambda functions that return the credentials of private registries to SageMaker; the roles of training jobs may call them, and run files refer to them as `image.credentialsProviderArn`. Default: none.',
      examples: [['arn:aws:lambda:us-west-2:111122223333:function:registry-credentials']],
    }),
  encryption: z.enum(['kms', 'aes256']).optional().meta({
    description:
      'Encryption of the image repository, which cannot be changed later: with the key of the environment (kms), or with a key that ECR owns (aes256).',
    default: 'kms',
  }),
});
