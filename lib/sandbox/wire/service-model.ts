import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';

/** A shape of a botocore service model; only the fields that validation reads. */
export interface Shape {
  type: string;
  required?: string[];
  members?: Record<string, { shape: string }>;
  member?: { shape: string };
  key?: { shape: string };
  value?: { shape: string };
  enum?: string[];
  min?: number;
  max?: number;
  pattern?: string;
}

/** AWS's own description of one service: operations, and the limits of every field. */
export interface ServiceModel {
  operations: Record<string, { input?: { shape: string } }>;
  shapes: Record<string, Shape>;
}

/**
 * Reads the newest model of a service from botocore's data folder (which MiniStack installs), so that requests are validated with the
 * limits that AWS publishes and not with a copy of them.
 */
export function loadServiceModel(botocoreData: string, service: string): ServiceModel {
  const folder = path.join(botocoreData, service);
  const newest = readdirSync(folder).sort().at(-1) ?? '';
  const packed = readFileSync(path.join(folder, newest, 'service-2.json.gz'));
  return JSON.parse(gunzipSync(packed).toString('utf8')) as ServiceModel;
}
