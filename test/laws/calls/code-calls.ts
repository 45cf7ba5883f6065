// The AWS calls of a piece of code: what is left of it when esbuild has bundled it from one exported function and dropped the rest.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { build } from 'esbuild';

const ROOT = path.join(__dirname, '..', '..', '..');

/** IAM's prefix by the SDK's package, where they differ. */
const PREFIXES: Readonly<Record<string, string>> = {
  'cloudwatch-logs': 'logs',
  'cost-explorer': 'ce',
  eventbridge: 'events',
  'service-quotas': 'servicequotas',
};

/** `s3:HeadObject`, ...: every command that one export of a file can send, sorted. */
export async function callsOf(file: string, name: string): Promise<string[]> {
  const { outputFiles } = await build({
    stdin: { contents: `export { ${name} } from './${file}';`, resolveDir: ROOT, loader: 'ts' },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    treeShaking: true,
    logLevel: 'silent',
  });
  const text = outputFiles[0]?.text ?? '';
  const found = [...importsOf(text)].filter(([local]) =>
    new RegExp(`\\b(new )?${local.replace('$', '\\$')}\\(`).test(text),
  );
  return [...new Set(found.map(([, call]) => call))].sort();
}

/** Operation by the local name of its command or paginator. */
function importsOf(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const [, names = '', client = ''] of text.matchAll(/import \{([^}]*)\} from "@aws-sdk\/client-([a-z0-9-]+)"/g)) {
    for (const entry of names.split(',')) {
      const [name = '', local = name] = entry.trim().split(' as ');
      const operation = /^(?:(.*)Command|paginate(.*))$/.exec(name);
      if (operation) found.set(local, `${PREFIXES[client] ?? client}:${operation[1] ?? operation[2]}`);
    }
  }
  return found;
}

/** The calls of the container: the public methods of the driver's S3 client, and the operations of its CodeArtifact client. */
export function containerCalls(): string[] {
  const read = (name: string) => readFileSync(path.join(ROOT, 'containers', 'driver', name), 'utf8');
  const methods = [...read('slipway_s3/client.py').matchAll(/^ {4}def ([a-z]\w*)\(/gm)].map(
    ([, name]) => `slipway_s3:${name}`,
  );
  const paths = [...read('slipway_driver/codeartifact.py').matchAll(/_call\("\w+", "([^"]+)"/g)].map(
    ([, p]) => `codeartifact:${p}`,
  );
  const operations = [...read('slipway_driver/run_secrets.py').matchAll(/_Service\("(\w+)", "\w+\.(\w+)"/g)].map(
    ([, name, operation]) => `${name}:${operation}`,
  );
  return [...methods, ...paths, ...operations].sort();
}
