import { z } from 'zod';
import { field, option, written } from '../formats/field';
import { sha256 } from '../formats/sha256';
import { scalar, words } from './formats';

/** Words of a command, in the form that AlgorithmSpecification accepts. */
const commandLine = z.array(z.string().max(256)).min(1).max(100);

export const code = z.strictObject({
  source: field(
    words(1024),
    '`builtin` (the built-in trainer), `builtin-tokenize` (tokenization for processing runs), `builtin-fetch` (repositories of a hub, for processing runs), a folder relative to this file, an archive in S3 (`.tar.gz`), a prefix in S3 (ending in `/`; its objects are packed at launch), or `image` (the program in the image, started by the image itself). A folder must be in the repository of the run file, or, without a repository, in the folder of the run file.',
    { examples: ['builtin', '../src', 's3://my-code/train.tar.gz', 's3://my-code/train/', 'image'] },
  ),
  entryPoint: option(
    words(256),
    'Script (.py, .sh) or Python module in `source` that is started. Default: train.py; the built-in trainer has its own entry point.',
    { examples: ['train.py', 'my_package.train'] },
  ),
  arguments: option(
    z.record(
      z.string(),
      field(
        z.union([scalar, z.array(scalar)], { error: 'must be text, a number, true, false, null or a list of them' }),
        'One argument: true becomes `--key`, false leaves it out, a list repeats it. The toolkit cannot pass the first and the last so (`code/argument-form`).',
      ),
    ),
    'Arguments of the script, passed as `--key value` in this order and never through a shell; a number is passed by its value (`2.10` as 2.1), text in quotes as written. With `contract: toolkit` they are added to `hyperparameters`.',
    { default: {}, examples: [{ 'learning-rate': 3.0e-4, 'warmup-steps': 2000 }] },
  ),
  requirements: option(
    words(256),
    'File in `source` with Python packages to install before the start; requires a package index or wheels that are reachable from the network of the environment. Default: none.',
    { examples: ['requirements.txt'] },
  ),
  containerEntrypoint: option(
    commandLine,
    'Program and first arguments that SageMaker starts in the image, with `source: image` (ContainerEntrypoint of the API). Default: the entrypoint of the image.',
    { examples: [['python3', '/opt/train/main.py']] },
  ),
  containerArguments: option(
    commandLine,
    'Arguments of that program, with `source: image` (ContainerArguments of the API). Default: the arguments of the image.',
    { examples: [['--config', '/opt/ml/input/data/config/train.yaml']] },
  ),
  sha256: option(
    sha256,
    'SHA-256 digest of the archive when `source` is in S3; the driver rejects an archive with another digest. Default: no check.',
    { examples: ['e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'] },
  ),
});

/** Section `image` of a run file. */
export const image = z.strictObject({
  kind: option(
    z.enum(['environment', 'dlc', 'smp', 'huggingface', 'uri']),
    'Container image: the image of the environment, an AWS Deep Learning Container, the image of the SageMaker model parallel library, the Hugging Face image, or an image by `uri`.',
    { default: 'environment' },
  ),
  version: option(
    written,
    'PyTorch version of a dlc or smp image, transformers version of a huggingface image. Default: none; required for these three kinds.',
    { examples: ['2.5.1'] },
  ),
  uri: option(z.string().min(1).max(255), 'Image in Amazon ECR; with `kind: uri`. Default: none.', {
    examples: ['111122223333.dkr.ecr.us-west-2.amazonaws.com/mine:1.0'],
  }),
});
