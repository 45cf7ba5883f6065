import { z } from 'zod';
import { field, flag, option } from '../formats/field';
import { iam, logging, secrets, tags } from './company';
import { image } from './image';
import { budget, guardrails, queue, quotas } from './limits';
import { network } from './network';
import { access, notificationsOfAll, team, teamName } from './people';
import { storage } from './storage';

/** Section `protection`. */
export const protection = z.strictObject({
  terminationProtection: option(
    z.boolean(),
    'Whether CloudFormation rejects the deletion of the stack until this is deployed as false. Default: `storage.retain`.',
  ),
  tableDeletionProtection: flag(
    'Whether DynamoDB rejects the deletion of the run table until this is deployed as false.',
  ),
});

/** The sections of an environment file, which each region may override. */
export const sections = {
  iam: option(iam, 'Names, paths and boundary of every role that the stack makes.', {
    examples: [{ permissionsBoundary: 'ml-boundary', rolePath: '/ml/', rolePrefix: 'acme-' }],
  }),
  tags: option(tags, 'Tags of all resources that support tags, and of all jobs. Default: only `slipway:environment`.', {
    examples: [{ CostCenter: '1234' }],
  }),
  network: option(network, 'Network of the jobs.', { examples: [{ mode: 'vpc-locked' }] }),
  storage: option(storage, 'Buckets and file systems, and what happens to them when the stack is deleted.', {
    examples: [{ retain: true, checkpointExpirationDays: 90 }],
  }),
  image: option(image, 'Container image of the environment.', { examples: [{ base: 'pytorch-2.13' }] }),
  quotas: option(quotas, 'Quotas that a deploy checks before it makes anything.', {
    examples: [{ enforce: 'fail', require: [{ instanceType: 'ml.p5.48xlarge', count: 2 }] }],
  }),
  guardrails: option(guardrails, 'Limits that the control plane checks on every launch. Default: none.', {
    examples: [{ allowedInstanceTypes: ['ml.p5*.48xlarge'], maxInstancesPerRun: 16 }],
  }),
  teams: option(
    z.record(teamName, field(team, 'One team: its own roles, S3 prefixes, launch alias and queue share.')),
    'Teams, by name. Default: one team with the name default.',
    { examples: [{ nlp: { principals: ['arn:aws:iam::111122223333:role/nlp'], share: 2 } }] },
  ),
  access: option(access, 'Who may assume the roles beside those of the teams. Default: nobody.', {
    examples: [{ auditors: ['arn:aws:iam::111122223333:role/audit'] }],
  }),
  prices: option(
    z.record(z.string(), field(z.number().positive(), 'Price of one instance, in USD per hour.')),
    'Negotiated prices by instance type, in USD per instance-hour. Default: dated list prices.',
    { examples: [{ 'ml.p5.48xlarge': 31.5 }] },
  ),
  budget: option(
    budget,
    'Monthly budget of the environment in this region, which notifies and stops nothing. Default: none.',
    { examples: [{ monthlyUsd: 500000, thresholdsPercent: [50, 80, 100], emails: ['ml-platform@example.com'] }] },
  ),
  queue: option(queue, 'The queue of runs.', { examples: [{ preemption: { afterMinutes: 30 } }] }),
  notifications: option(notificationsOfAll, 'Who is notified of all runs and alarms. Default: nobody.', {
    examples: [{ emails: ['ml-platform@example.com'] }],
  }),
  secrets: option(secrets, 'Secrets that run files may name.', { examples: [{ allowedPrefix: 'slipway/{team}/' }] }),
  logging: option(logging, 'Log groups of the stack.', { examples: [{ kms: true, retentionDays: 365 }] }),
  protection: option(protection, 'Protection of the stack against deletion.', {
    examples: [{ terminationProtection: true }],
  }),
};
