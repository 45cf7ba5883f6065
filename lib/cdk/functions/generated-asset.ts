import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Asset } from 'aws-cdk-lib/aws-s3-assets';
import type { Construct } from 'constructs';

/** A file asset whose contents are generated at synthesis. They are staged immediately, so that the temporary file can be deleted. */
export function generatedAsset(scope: Construct, id: string, name: string, contents: string | Buffer): Asset {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-asset-'));
  const file = path.join(folder, name);
  writeFileSync(file, contents);
  try {
    return new Asset(scope, id, { path: file });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
