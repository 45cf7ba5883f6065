// What IAM decided on the calls that were made on an embedded AWS, by role and by the statement that decided.
import { readFileSync } from 'node:fs';

/** A line of `decisionsFile` (lib/sandbox/emulator/slipway_record.py). */
interface Decision {
  principal: string;
  action: string;
  decision: 'Allow' | 'Deny' | 'ImplicitDeny';
  /** Sid of the statement that decided; empty where none did, or where it has no name. */
  statement: string;
}

/** Template of one stack, as far as its roles go. */
export interface RoleTemplate {
  Resources: Record<string, { Type: string; Properties?: Record<string, unknown> }>;
}

interface Statement {
  Sid?: string;
  Effect: string;
}

/** Decisions on sessions of roles, by the name of the role: those on services and on the account's owner are left out. */
export function decisionsByRole(file: string): Map<string, Decision[]> {
  const found = new Map<string, Decision[]>();
  for (const line of readFileSync(file, 'utf8').split('\n').filter(Boolean)) {
    const decision = JSON.parse(line) as Decision;
    const [, role] = /:assumed-role\/([^/]+)\//.exec(decision.principal) ?? [];
    if (role) found.set(role, [...(found.get(role) ?? []), decision]);
  }
  return found;
}

/** `role action` of every call that was denied, sorted. */
export function denied(decisions: ReadonlyMap<string, readonly Decision[]>): string[] {
  const found = [...decisions].flatMap(([role, all]) =>
    all.filter(({ decision }) => decision !== 'Allow').map(({ action }) => `${role} ${action}`),
  );
  return [...new Set(found)].sort();
}

/** Sids of the statements that allow a role something, as the template writes them. */
export function allowingSids({ Resources }: RoleTemplate, roleId: string): string[] {
  return Object.values(Resources).flatMap(({ Type, Properties }) => {
    if (Type !== 'AWS::IAM::Policy') return [];
    const { Roles, PolicyDocument } = Properties as {
      Roles: { Ref?: string }[];
      PolicyDocument: { Statement: Statement[] };
    };
    if (!Roles.some(({ Ref }) => Ref === roleId)) return [];
    return PolicyDocument.Statement.flatMap(({ Sid, Effect }) => (Sid && Effect === 'Allow' ? [Sid] : []));
  });
}
