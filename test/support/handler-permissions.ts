import { readFileSync } from 'node:fs';

const { arns, types } = JSON.parse(readFileSync('lib/sandbox/emulator/slipway_rules/handlers.json', 'utf8')) as {
  arns: Record<string, string[]>;
  types: Record<string, string[]>;
};

/** Permissions of CloudFormation's handlers by resource type, with the formats of the ARNs on which each action is authorized. */
export const HANDLERS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = Object.fromEntries(
  Object.entries(types).map(([type, actions]) => [
    type,
    Object.fromEntries(actions.map((action) => [action, arns[action] ?? []])),
  ]),
);
