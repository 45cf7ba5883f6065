import { z } from 'zod';
import { sha256 } from '../sha256';
import { scalar, text, words } from './formats';

/** Section `code`. */
export const code = z.strictObject({
  source: words(1024).meta({
    description:
      '`builtin` (the built-in trainer), `builtin-tokenize` (tokenisation for processing runs), a folder relative to this file, or an archive in S3 (`.tar.gz`). A folder must lie in the repository of the run file; outside a repository, in the folder of the run file.',
    examples: ['builtin', '../src', 's3://{dataBucket}/code/train.tar.gz'],
  }),
  entryPoint: words(256)
    .optional()
    .meta({
      description:
        'Script (.py, .sh) or Python module in `source` that is started. Default: train.py; the built-in trainer has its own.',
      examples: ['train.py', 'my_package.train'],
    }),
  arguments: z
    .record(
      z.string(),
      z
        .union([scalar, z.array(scalar)], { error: 'must be text, a number, true, false, null or a list of them' })
        .meta({ description: 'One argument: true becomes `--key`, false leaves it out, a list repeats it.' }),
    )
    .optional()
    .meta({
      description:
        'Arguments of the script, passed as `--key value` in this order and never through a shell. Under `contract: toolkit` they join `hyperparameters`.',
      default: {},
      examples: [{ 'learning-rate': 3.0e-4, 'warmup-steps': 2000 }],
    }),
  requirements: words(256)
    .optional()
    .meta({
      description:
        'File in `source` with Python packages to install before the start; needs an index or wheels that the network of the environment reaches. Default: none.',
      examples: ['requirements.txt'],
    }),
  sha256: sha256.optional().meta({
    description:
      'SHA-256 digest of the archive when `source` is in S3; the driver refuses any other. Default: the archive is not checked.',
    examples: ['e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
  }),
});

/** Section `image` of a run file. */
export const image = z.strictObject({
  kind: z.enum(['environment', 'dlc', 'smp', 'huggingface', 'uri']).optional().meta({
    description:
      'Container image: the one that the environment built, an AWS Deep Learning Container, the image of the SageMaker model parallel library, the Hugging Face image, or any by `uri`.',
    default: 'environment',
  }),
  version: text.optional().meta({
    description:
      'PyTorch version of a dlc or smp image, transformers version of a huggingface image, in quotes. Default: none; these three kinds require it.',
    examples: ['2.5.1'],
  }),
  uri: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .meta({
      description: 'Image in Amazon ECR, with `kind: uri`. Default: none.',
      examples: ['111122223333.dkr.ecr.us-west-2.amazonaws.com/mine:1.0'],
    }),
});
