// What a template says once CloudFormation has filled its references in, at a place where each logical id stands for a name.
import { TemplateValues } from '../../../lib/core/contracts/template-values';
import type { TemplateResource } from '../../cdk/support/app';

export const PINNED = { partition: 'aws', account: '111122223333', region: 'us-west-2', urlSuffix: 'amazonaws.com' };

export type Resources = Record<string, TemplateResource>;

/** ARN of a resource of the template, or undefined when its type is in no table. */
export const arnOf = (resources: Resources, id: string): string | undefined =>
  new TemplateValues(resources, PINNED).arnOf(id);

/** Its explicit name, or its logical id. */
export const nameOf = (resources: Resources, id: string): string => new TemplateValues(resources, PINNED).nameOf(id);

/** The value with all its references filled in. */
export const resolveValue = (resources: Resources, value: unknown): unknown =>
  new TemplateValues(resources, PINNED).resolve(value);
