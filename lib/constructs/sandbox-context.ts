import type { Construct } from 'constructs';

/** Context key: `-c sandbox=1` leaves out what the embedded AWS cannot deploy. */
export const SANDBOX_CONTEXT = 'sandbox';

/**
 * Whether the app is synthesised for the embedded AWS. MiniStack knows no self-referencing security group rules, flow logs,
 * NAT gateways, FSx, budgets and image builds; everything else is the same template.
 */
export function isSandbox(scope: Construct): boolean {
  const value: unknown = scope.node.tryGetContext(SANDBOX_CONTEXT);
  return value === true || value === 1 || value === '1' || value === 'true';
}
