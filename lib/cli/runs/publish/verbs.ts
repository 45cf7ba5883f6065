import type { CommandLine } from '../../command-line';

export function publishVerbs(cli: CommandLine): void {
  cli
    .verb(
      'publish <run>',
      'copy the final weights of a run to a separate S3 prefix, with a model card; optionally register them in the SageMaker Model Registry',
      'slipway publish llama2-13b-261101090000\n  slipway publish llama2-13b-261101090000 --registry research-nlp-llama --inference-image 763104351884.dkr.ecr.us-west-2.amazonaws.com/djl-inference:0.33.0-lmi15.0.0-cu128',
    )
    .option(
      '--to <s3://bucket/prefix/>',
      'target prefix; default: teams/<team>/models/<run>/ in the data bucket of the environment',
    )
    .option('--registry <group>', 'also register a version in this model package group, pending manual approval')
    .option('--inference-image <uri>', 'with --registry: image that serves the model')
    .option('--overwrite', 'replace the weights of another run at the same prefix')
    .action(cli.action(() => import('./publish.js'), 'publish'));
}
