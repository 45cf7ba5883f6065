import { z } from 'zod';
import published from '../../lib/core/catalog/trainer-constants.json';
import { NEW_ATTEMPT, RESTART_SECONDS } from '../../lib/core/planner/run/failures';

const { llama3, rsc1Nodes, rsc1Jobs } = published.failuresPerNodeDay;
const RSC1_NODE_SHARE = rsc1Nodes / rsc1Jobs;

/**
 * What the simulation assumes, unless `--constants FILE` says otherwise (any subset of these names, as JSON).
 *
 * The rates are those that save intervals and plans use (containers/trainer, checkpoint/interval.py).
 * Shares: of the 354 interruptions of Llama 3 whose cause facts name, 258 were of a node (GPU, HBM, maintenance, corruption),
 * 54 software, 35 network, 7 hangs. What makes jobs fail more often than nodes is no node failure: under the RSC-1 job rate the
 * nodes keep their own rate and the rest is shared among process, network and hang as above.
 */
const kinds = z.strictObject({ process: z.number(), node: z.number(), network: z.number(), hang: z.number() });

export const constantsSchema = z.strictObject({
  days: z.number().positive().default(30),
  seeds: z.int().positive().default(20),
  nodes: z.array(z.int().positive()).default([8, 64, 512, 1250, 2500]),
  failuresPer1000NodeDays: z
    .strictObject({ llama3: z.number().nonnegative(), 'rsc1-job': z.number().nonnegative() })
    .default({ llama3: 1000 * llama3, 'rsc1-job': 1000 * rsc1Jobs }),
  shares: z.strictObject({ llama3: kinds, 'rsc1-job': kinds }).default({
    llama3: { node: 258 / 354, process: 54 / 354, network: 35 / 354, hang: 7 / 354 },
    'rsc1-job': {
      node: RSC1_NODE_SHARE,
      process: (1 - RSC1_NODE_SHARE) * (54 / 96),
      network: (1 - RSC1_NODE_SHARE) * (35 / 96),
      hang: (1 - RSC1_NODE_SHARE) * (7 / 96),
    },
  }),
  /** Of the node failures, those that take the machine; after the others, the driver on it lives on. */
  lostMachineShare: z.number().min(0).max(1).default(published.lostMachineShare),
  /** Of the node failures that leave the driver, those that break the next host as well, which has its copies. Not published; assumed. */
  lostPartnerShare: z.number().min(0).max(1).default(0.02),
  /**
   * Of the node failures that leave the driver, those whose machine is not repaired and belongs to the next attempt again, where it fails
   * again after so long. Not published for SageMaker; assumed.
   */
  returningHostShare: z.number().min(0).max(1).default(0.1),
  relapseHours: z.number().positive().default(6),
  /** From the create call to the first instruction of the container, beside waiting for capacity. */
  newAttemptMinutes: z
    .number()
    .nonnegative()
    .default(NEW_ATTEMPT.startSeconds / 60),
  /** Between the end of the ranks and their first step in the same containers, beside loading. */
  restartInPlace: z
    .strictObject({
      /** End of all ranks, fork of new ones, building the model. */
      prepareSeconds: z.number().nonnegative().default(RESTART_SECONDS.prepare),
      /** Communicators of all ranks. */
      rendezvousSeconds: z.number().nonnegative().default(RESTART_SECONDS.rendezvous),
      /** First steps with the files of the compiler. */
      compileSeconds: z.number().nonnegative().default(RESTART_SECONDS.firstSteps),
    })
    .prefault({}),
  /** Loads of a new attempt read what a save has written: the upload of 8 hosts, which hold the whole state, takes 52 s (saveUploadSeconds). */
  checkpointLoadMinutes: z
    .number()
    .nonnegative()
    .default(NEW_ATTEMPT.loadSeconds / 60),
  /**
   * A new attempt on instances that a warm pool kept: no instance starts, no image travels, the container starts again. Measured
   * by AWS as under 20 s for small jobs.
   */
  warmAttemptMinutes: z.number().nonnegative().default(3),
  /** Lognormal wait for capacity of a new attempt. */
  capacityWait: z
    .strictObject({ medianMinutes: z.number().nonnegative(), sigma: z.number().nonnegative() })
    .default({ medianMinutes: 1, sigma: 1 }),
  /**
   * From a save's start to its COMMITTED.json; training goes on meanwhile. Twice what lib/core/planner says of 70B parameters with Adam on
   * ml.p5.48xlarge unless given: 52 s on 8 nodes, 15 s on 64.
   */
  saveUploadSeconds: z.number().nonnegative().optional(),
  /** Share of hangs that no collective notices, because no rank waits in one. */
  silentHangShare: z.number().min(0).max(1).default(0.1),
  /** Until a person resumes a run that needs one. */
  personMinutes: z.number().nonnegative().default(60),
  maxRuntimeSeconds: z.number().positive().default(432_000),
  slipway: z
    .strictObject({
      /** How long a save blocks training. Unless given, twice what the planner says: with copies in memory not at all. */
      saveBlockedSeconds: z.number().nonnegative().optional(),
      /** From a rank's end to the decision of all drivers: 0.7 s measured (docs/goodput.md), and what nvidia-smi takes. */
      crashDetectionSeconds: z.number().nonnegative().default(10),
      /** NCCL timeout of the trainer, silence budget of the driver's watchdog: the product's defaults. */
      collectiveTimeoutSeconds: z.number().positive().default(150),
      /** After this time in a step of 10 s, ranks save the last step, or end if copies in memory have it: the product's number. */
      stalledSeconds: z.number().positive().default(30),
      /** How long ranks that stand still wait for the vote of a frozen one: the product's number. */
      voteSeconds: z.number().nonnegative().default(10),
      /** Traces of NCCL, for which a second is assumed, and the most time for stacks to be printed and read: the product's number. */
      evidenceSeconds: z.number().nonnegative().default(7),
      silenceMinutes: z.number().positive().default(20),
      /** Restarts in place within one hour; the product's number if not given. */
      restartsInPlace: z.int().nonnegative().optional(),
      /**
       * Load of a restart in place, from the copies of the checkpoint on the host's own disk: 70B parameters with Adam on 64 hosts are
       * 13 GB a host, seconds at the 2 GB/s of one NVMe drive. Equal to checkpointLoadMinutes = as if they were not there.
       */
      localLoadMinutes: z.number().nonnegative().default(0.5),
      /** checkpoints.memory: copies of the state in the memory of the host and of the next one. null = off. */
      memory: z
        .strictObject({
          /** A copy after each step of so many seconds; a restart repeats that much. */
          everySeconds: z.number().positive().default(10),
          /** Share of the time for which copies block training: 0.3 % measured on CPUs (docs/recovery.md). */
          overhead: z.number().min(0).max(published.copiesShareOfTime).default(0.003),
          loadSeconds: z.number().nonnegative().default(5),
        })
        .nullable()
        .prefault({}),
      /** GPUs that were found broken are remembered: the health check refuses them at once, and a spare host takes the place. */
      remembersHosts: z.boolean().default(true),
      /** compute.keepAliveSeconds > 0: a warm pool stays after attempts that ended by an exit code, not after lost machines. */
      warmPool: z.boolean().default(true),
      /**
       * compute.spareInstances by the number of nodes; none for others. At 512 nodes and more they save more node-hours than they take
       * (`slipway plan` says how many would); at 64 they only save time.
       */
      spareHosts: z.record(z.string(), z.int().nonnegative()).default({ 64: 2, 512: 4, 1250: 20, 2500: 40 }),
      maxAttempts: z.int().positive().default(100_000),
    })
    .prefault({}),
  today: z
    .strictObject({
      saveBlockedSeconds: z.number().nonnegative().default(60),
      /** A dead rank or host ends its peers' step at once; the launchers take their time. */
      crashDetectionSeconds: z.number().nonnegative().default(30),
      intervalMinutes: z.number().positive().default(60),
      collectiveTimeoutSeconds: z.number().positive().default(1800),
      /** A hang that no collective notices lasts until somebody looks. */
      personNoticesHangMinutes: z.number().positive().default(480),
    })
    .prefault({}),
});

export type Constants = z.output<typeof constantsSchema>;
export type Rate = keyof Constants['failuresPer1000NodeDays'];
export const RATES: readonly Rate[] = ['llama3', 'rsc1-job'];
