// `npm run emulator:record [finding...]`: looks for the defects of version 0.1.0 on the embedded AWS without the rules and with them, and for
// the same defects in this version; writes docs/emulator-0.1.0.json, from which `npm run docs:emulator` makes the table.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Deployed, Probe } from './probe';
import { SERVICE_PROBES } from './probes-service';
import { STACK_PROBES } from './probes-stack';
import { COLUMNS, type Column, FILE, type Observation, type Record010, type Row } from './recorded';
import { checkedOut, thisVersion, type Version } from './version';
import { TableWorld } from './world';

/** Version 0.1.0. */
export const COMMIT = '84c2e5e';
export const PROBES: readonly Probe[] = [...STACK_PROBES, ...SERVICE_PROBES].sort((a, b) => a.finding - b.finding);

/** Looks for some of the defects; `columns` are looked at one after the other. */
export async function observe(findings: readonly number[], columns: readonly Column[] = COLUMNS): Promise<Record010> {
  const probes = PROBES.filter(({ finding }) => findings.includes(finding));
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-0.1.0-'));
  try {
    const old = columns.some((column) => column !== 'thisVersion') ? checkedOut(COMMIT, folder) : undefined;
    const rows = probes.map(({ finding, defect }): Row => ({ finding, defect }));
    for (const column of columns) {
      const version = column === 'thisVersion' ? thisVersion() : old;
      if (!version) continue;
      const seen = await look(version, column !== 'before', probes);
      for (const [i, row] of rows.entries()) row[column] = seen[i];
    }
    const recorded = new Date().toISOString().slice(0, 10);
    return { commit: old?.commit ?? COMMIT, thisCommit: thisVersion().commit, recorded, rows };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function look(version: Version, hasRules: boolean, probes: readonly Probe[]): Promise<Observation[]> {
  const seen = new Map<number, Observation>();
  const groups = [
    // As IAM refuses version 0.1.0 every look at a quota, a run above its quota would be accepted and no first deploy would fail.
    { probes: STACK_PROBES, rulesOff: ['action-resources'], needsStack: false },
    { probes: SERVICE_PROBES, rulesOff: [], needsStack: true },
  ];
  for (const group of groups) {
    const chosen = probes.filter((probe) => group.probes.includes(probe));
    if (chosen.length === 0) continue;
    const world = await TableWorld.open(version, hasRules ? group.rulesOff : 'all');
    try {
      const deployed = { name: 'table' };
      if (group.needsStack) await deploy(world, deployed.name);
      for (const probe of chosen) seen.set(probe.finding, await observed(world, probe, deployed));
    } finally {
      await world.close();
    }
  }
  return probes.map(({ finding }) => seen.get(finding) ?? { shows: false, saw: 'not recorded' });
}

async function deploy(world: TableWorld, name: string): Promise<void> {
  const made = await world.deploy(await world.synth(name, world.version.destroyable));
  if (!made.ok) throw new Error(`${name}: must deploy, got ${made.said.slice(-1500)}`);
}

async function observed(world: TableWorld, probe: Probe, deployed: Deployed): Promise<Observation> {
  const found = await probe.observe(world, deployed);
  const where = `${world.version.commit.slice(0, 7)} ${world.hasRules ? 'with' : 'without'} rules`;
  process.stderr.write(`${where}: ${probe.finding}: ${found.saw}\n`);
  return found;
}

/** The record of before with the rows that were looked at again. */
function merged(found: Record010): Record010 {
  if (!existsSync(FILE)) return found;
  const before = JSON.parse(readFileSync(FILE, 'utf8')) as Record010;
  const again = new Set(found.rows.map(({ finding }) => finding));
  const rows = [...before.rows.filter(({ finding }) => !again.has(finding)), ...found.rows];
  return { ...found, rows: rows.sort((a, b) => a.finding - b.finding) };
}

if (require.main === module) {
  const asked = process.argv.slice(2).map(Number);
  observe(asked.length > 0 ? asked : PROBES.map(({ finding }) => finding)).then(
    (found) => writeFileSync(FILE, `${JSON.stringify(merged(found), undefined, 2)}\n`),
    (error: Error) => {
      process.stderr.write(`${error.message}\n`);
      process.exitCode = 1;
    },
  );
}
