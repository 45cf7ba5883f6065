import { Stack } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import type { IConstruct } from 'constructs';
import { acknowledge } from '../acknowledge';

/** A statement of an IAM policy with exact actions and resources, and a reason for each wildcard. */
export interface ExactStatement extends Pick<iam.PolicyStatementProps, 'conditions'> {
  /** Purpose of the statement, in letters and digits; unique within a policy. */
  readonly sid: string;
  /** Actions, such as `s3:GetObject`; no wildcard. */
  readonly actions: string[];
  /** ARNs; one that contains `*` needs `wildcard`. */
  readonly resources: string[];
  /** ARNs that a denial excludes: it applies to everything else, and `resources` is empty. @default - it applies to `resources` */
  readonly notResources?: string[];
  /** Whether the statement denies. @default false */
  readonly deny?: boolean;
  /**
   * Why the resources contain `*`. Required in that case: otherwise the check of the template fails. @default - no resource contains `*`
   */
  readonly wildcard?: string;
}

/** Adds one statement to a role, and acknowledges each `*` in its resources individually with the given reason. */
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

/** A resource in the notation of cdk-nag: references in angle brackets, joins concatenated. */
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
