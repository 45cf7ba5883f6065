import { z } from 'zod';
import { count, words } from './formats';

/** Section `limits`. */
export const limits = z.strictObject({
  maxRuntimeSeconds: z
    .int()
    .min(1)
    .max(2_419_200)
    .optional()
    .meta({
      description:
        'Longest run time of one attempt, in seconds. A run that needs longer is handed over to its next attempt at this limit, which is no failure.',
      default: 432_000,
      examples: [86_400],
    }),
  maxWaitSeconds: z
    .int()
    .min(1)
    .optional()
    .meta({
      description:
        'Spot only: longest time of one attempt with its waiting, in seconds; at least `maxRuntimeSeconds`. Default: `maxRuntimeSeconds + 86400` for spot, none elsewhere.',
      examples: [518_400],
    }),
  maxPendingSeconds: z
    .int()
    .min(1800)
    .max(2_419_200)
    .optional()
    .meta({
      description:
        'Longest time for which a job on accelerated instances waits for capacity, in seconds. Default: none.',
      examples: [86_400],
    }),
  maxCostUsd: z
    .number()
    .positive()
    .optional()
    .meta({
      description:
        'Most that the whole run may cost, in USD: a launch whose plan is above it is refused, a run that has spent it is stopped after a checkpoint. Default: none.',
      examples: [60_000],
    }),
  maxAttempts: count.optional().meta({
    description: 'Most failed attempts of the whole run.',
    default: 20,
    examples: [20],
  }),
  retryInternalErrors: z
    .int()
    .min(1)
    .max(30)
    .optional()
    .meta({
      description: 'How often SageMaker itself starts a job again after an internal error (RetryStrategy of the API).',
      default: 5,
      examples: [5],
    }),
});

/** Section `network` of a run file. */
export const network = z.strictObject({
  isolation: z.boolean().optional().meta({
    description: 'Whether containers are cut off from all networks but each other (EnableNetworkIsolation of the API).',
    default: false,
  }),
  interContainerEncryption: z.boolean().optional().meta({
    description: 'Whether traffic between instances is encrypted by SageMaker. EFA traffic is not covered.',
    default: false,
  }),
  efa: z.enum(['required', 'preferred', 'off']).optional().meta({
    description:
      'What a fall-back from EFA to sockets means: required ends the job, preferred reports it, off does not expect EFA. Default: required on several instances of types with EFA, off elsewhere.',
  }),
  efaVariables: z.enum(['auto', 'guide-2023']).optional().meta({
    description:
      'Environment variables of EFA: by instance type and version (auto), or the set that AWS published for p4d in 2023, unchanged.',
    default: 'auto',
  }),
});

const metric = z
  .strictObject({
    name: words(255).meta({ description: 'Name of the metric.', examples: ['train:loss'] }),
    regex: words(500).meta({
      description: 'Regular expression with one group that finds the value in a log line.',
      examples: ['loss=([0-9.eE+-]+)'],
    }),
  })
  .meta({ description: 'A metric that SageMaker reads from the log.' });

/** Section `observability`. */
export const observability = z.strictObject({
  metrics: z
    .array(metric)
    .max(40)
    .optional()
    .meta({
      description: 'Metrics that SageMaker reads from the log and writes to CloudWatch.',
      default: [],
      examples: [[{ name: 'train:loss', regex: 'loss=([0-9.eE+-]+)' }]],
    }),
  profiler: z
    .union([z.literal('off'), z.literal('pytorch'), z.literal('sagemaker'), z.literal(false)], {
      error: 'must be off, pytorch or sagemaker',
    })
    .transform((v) => (v === false ? 'off' : v))
    .optional()
    .meta({
      description: 'Profiler: that of PyTorch, that of SageMaker, or none (off).',
      default: 'off',
      examples: ['pytorch'],
    }),
  tensorBoard: z.boolean().optional().meta({
    description: 'Whether TensorBoard event files are copied to the artifact bucket.',
    default: false,
  }),
  remoteDebug: z.boolean().optional().meta({
    description:
      'Whether AWS Systems Manager may open a shell in the containers (RemoteDebugConfig of the API); the guardrails of the environment must allow it.',
    default: false,
  }),
  wandb: z
    .strictObject({
      project: words(128).meta({ description: 'Project of Weights & Biases.', examples: ['pretrain'] }),
      entity: words(128)
        .optional()
        .meta({
          description: 'Team or person of Weights & Biases. Default: that of the API key.',
          examples: ['acme'],
        }),
      baseUrl: z
        .url({ protocol: /^https$/, error: 'must be an https URL such as https://wandb.example.com' })
        .optional()
        .meta({
          description:
            'Server of your own, which a network without the internet can reach. Default: that of Weights & Biases.',
          examples: ['https://wandb.example.com'],
        }),
    })
    .optional()
    .meta({
      description:
        'Where runs are logged in Weights & Biases. The built-in trainer writes its progress there; scripts of your own find WANDB_PROJECT, WANDB_ENTITY, WANDB_BASE_URL, WANDB_RUN_ID, WANDB_NAME and WANDB_RESUME set, so that all attempts of a run are one run there. The image must have the package; `secrets.WANDB_API_KEY` names the secret with the API key. Default: nowhere.',
      examples: [{ project: 'pretrain', entity: 'acme' }],
    }),
  mlflow: z
    .strictObject({
      arn: z
        .string()
        .regex(
          /^arn:aws[a-z-]*:sagemaker:[a-z0-9-]*:\d{12}:mlflow-[a-zA-Z-]*\/.+/,
          'must be the ARN of an MLflow tracking server or app',
        )
        .meta({
          description: 'ARN of an MLflow tracking server or app; the environment must name it for the team.',
          examples: ['arn:aws:sagemaker:us-west-2:111122223333:mlflow-tracking-server/shared'],
        }),
      experiment: words(256)
        .optional()
        .meta({
          description: 'Name of the MLflow experiment. Default: none is sent.',
          examples: ['pretrain'],
        }),
    })
    .optional()
    .meta({
      description: 'Where runs are logged in MLflow. Default: nowhere.',
      examples: [
        { arn: 'arn:aws:sagemaker:us-west-2:111122223333:mlflow-tracking-server/shared', experiment: 'pretrain' },
      ],
    }),
});
