// The AWS calls of a piece of code: what is left of it when esbuild has bundled it from one exported function and dropped the rest.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { build, type Plugin } from 'esbuild';

const ROOT = path.join(__dirname, '..', '..', '..');

/** IAM's prefix by the SDK's package, where they differ. */
const PREFIXES: Readonly<Record<string, string>> = {
  'cloudwatch-logs': 'logs',
  'cost-explorer': 'ce',
  eventbridge: 'events',
  'service-quotas': 'servicequotas',
};

/** One exported function of a file without its extension. */
export interface CodeEntry {
  file: string;
  name: string;
}

const nameOf = ({ file, name }: CodeEntry) => `${file}#${name}`;

/**
 * `s3:HeadObject`, ...: every command that each of these functions can send, sorted, by its file and name. All are bundled at once, because
 * they share most of their modules.
 */
export async function readCalls(entries: readonly CodeEntry[]): Promise<(entry: CodeEntry) => string[]> {
  const names = [...new Set(entries.map(nameOf))];
  const { outputFiles } = await build({
    entryPoints: names.map((name, i) => ({ in: name, out: String(i) })),
    outdir: '/',
    plugins: [ENTRIES],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    treeShaking: true,
    logLevel: 'silent',
  });
  const texts = new Map(outputFiles.map((file) => [path.basename(file.path, '.js'), file.text]));
  const found = new Map(names.map((name, i) => [name, callsIn(texts.get(String(i)) ?? '')]));
  return (entry) => {
    const calls = found.get(nameOf(entry));
    if (!calls) throw new Error(`${nameOf(entry)} was not bundled`);
    return calls;
  };
}

/** Makes of `lib/cli/runs/list#list` a module that exports this function alone. */
const ENTRIES: Plugin = {
  name: 'entries',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /#/ }, ({ path: entry, kind }) =>
      kind === 'entry-point' ? { path: entry, namespace: 'entry' } : undefined,
    );
    onLoad({ filter: /./, namespace: 'entry' }, ({ path: entry }) => {
      const [file, name] = entry.split('#');
      return { contents: `export { ${name} } from './${file}';`, resolveDir: ROOT, loader: 'ts' };
    });
  },
};

/** The commands and paginators that a bundle creates. */
function callsIn(text: string): string[] {
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
  const paths = [...read('slipway_driver/code.py').matchAll(/call_aws\([^)]*path="([^"]+)"/g)].map(
    ([, p]) => `codeartifact:${p}`,
  );
  const operations = [...read('slipway_driver/aws_call.py').matchAll(/call\("(\w+)\.(Get\w+)"/g)].map(
    ([, name, operation]) => `${name === 'AmazonSSM' ? 'ssm' : name}:${operation}`,
  );
  return [...methods, ...paths, ...operations].sort();
}
