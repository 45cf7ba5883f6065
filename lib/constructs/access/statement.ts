import { Stack } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import type { IConstruct } from 'constructs';
import { acknowledge } from '../acknowledge';

/** A statement of an IAM policy with exact actions and resources, and a reason for each wildcard. */
export interface ExactStatement extends Pick<iam.PolicyStatementProps, 'conditions'> {
  /** What the statement is there for, in letters and digits; once in a policy. */
  readonly sid: string;
  /** Actions, such as `s3:GetObject`; no wildcard. */
  readonly actions: string[];
  /** ARNs; a `*` in one needs `wildcard`. */
  readonly resources: string[];
  /** ARNs that a denial leaves out: it holds for everything else, and `resources` is empty. @default - it holds for `resources` */
  readonly notResources?: string[];
  /** Whether the statement denies. @default false */
  readonly deny?: boolean;
  /** Why the resources hold a `*`. Required where they do: the check of the template fails without it. @default - no resource holds a `*` */
  readonly wildcard?: string;
}

/** Adds one statement to a role; each `*` in its resources is acknowledged with the reason given, by its own name. */
export function allow(role: iam.Role, { wildcard, deny, ...statement }: ExactStatement): void {
  const effect = deny ? iam.Effect.DENY : iam.Effect.ALLOW;
  role.addToPolicy(new iam.PolicyStatement({ ...statement, effect }));
  if (wildcard) acknowledgeResources(role, statement.resources, wildcard);
}

/** Acknowledges the `*` in these resources of the policies below `scope`. */
export function acknowledgeResources(scope: IConstruct, resources: readonly string[], reason: string): void {
  for (const resource of resources) {
    const name = flatten(Stack.of(scope).resolve(resource));
    if (name.includes('*')) acknowledge(scope, { id: `AwsSolutions-IAM5[Resource::${name}]`, reason });
  }
}

/** A resource as cdk-nag names it: references in angle brackets, joins put together. */
function flatten(node: unknown): string {
  if (typeof node === 'string') return node.replace(/\$\{/g, '<').replace(/\}/g, '>');
  const reference = node as Record<string, unknown>;
  if (reference['Fn::Join']) {
    const [delimiter, items] = reference['Fn::Join'] as [string, unknown[]];
    return items.map(flatten).join(delimiter);
  }
  if (reference['Fn::GetAtt']) {
    const [resource, attribute] = reference['Fn::GetAtt'] as [string, string];
    return `<${resource}.${attribute}>`;
  }
  return reference.Ref ? `<${String(reference.Ref)}>` : JSON.stringify(node);
}
