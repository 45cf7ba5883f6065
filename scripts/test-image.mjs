// `npm run test:image`: builds both Dockerfiles with buildah (Debian package; chroot isolation, no container engine) and runs the self-test
// in good and bad variants. The base is made from Debian packages with a stub CUDA folder in place of nvidia/cuda, and the EFA installer is
// replaced by one that behaves like AWS's (test/image/stand-ins). Every RUN line of both files is executed. Needs root, buildah and
// debootstrap, and about 30 GB of disk; what it cannot have it names. What stays unproven stands in docs/assumptions.md.
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '..');
const TRAINING = path.join(ROOT, 'containers/training');
const STAND_INS = path.join(ROOT, 'test/image/stand-ins');
const BASE = 'localhost/slipway-stand-in-base';
const [CUDA_IMAGE, THIN_IMAGE] = ['localhost/slipway-cuda', 'localhost/slipway-thin'];
const BASE_PATH =
  '/usr/local/nvidia/bin:/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const results = [];

/** How the machine reaches its package sources; none of it stays in the project. */
const HOST_FILES = ['/etc/resolv.conf', '/etc/hosts', '/etc/pip.conf'];

const missing = ['buildah', 'debootstrap', 'gcc'].filter((tool) => spawnSync('which', [tool]).status !== 0);
if (missing.length > 0 || process.getuid() !== 0) {
  const why = missing.length > 0 ? `${missing.join(', ')} on PATH (apt-get install ${missing.join(' ')})` : 'root';
  process.stderr.write(`test:image: must have ${why}; skipped\n`);
  process.exit(0);
}

const work = mkdtempSync(path.join(tmpdir(), 'slipway-image-'));
const storage = ['--root', path.join(work, 'storage'), '--runroot', path.join(work, 'run'), '--storage-driver', 'vfs'];
process.on('exit', cleanUp);
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));

function cleanUp() {
  spawnSync('buildah', [...storage, 'rm', '--all'], { stdio: 'ignore' });
  rmSync(work, { recursive: true, force: true });
}

const buildah = (...args) =>
  execFileSync('buildah', [...storage, ...args], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    stdio: ['ignore', 'pipe', 'inherit'],
  });

/** One line of the table; a failed expectation makes the whole fail. */
function check(name, ok, detail = '') {
  results.push({ name, ok, detail });
  process.stdout.write(`${ok ? 'ok  ' : 'FAIL'} ${name}${detail ? `: ${detail}` : ''}\n`);
}

function standIns() {
  const folder = path.join(work, 'aws-efa-installer');
  cpSync(STAND_INS, folder, { recursive: true });
  for (const tool of ['efa_installer.sh', 'curl']) chmodSync(path.join(folder, tool), 0o755);
  const compile = (output, source, ...more) =>
    execFileSync('gcc', ['-shared', '-fPIC', '-o', path.join(folder, output), path.join(folder, source), ...more]);
  compile('libfabric.so.1', 'libfabric.c', '-Wl,-soname,libfabric.so.1');
  compile('libnccl-net.so', 'plugin.c', path.join(folder, 'libfabric.so.1'), '-ldl');
  execFileSync('tar', ['-czf', path.join(work, 'efa.tar.gz'), '-C', work, 'aws-efa-installer']);
  return folder;
}

/** A Debian root with what nvidia/cuda images have: a CUDA runtime without the unversioned name, NVIDIA's entrypoint, no package lists. */
function makeBase() {
  const root = path.join(work, 'base');
  execFileSync('debootstrap', ['--variant=minbase', '--include=ca-certificates', 'bookworm', root], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  for (const file of HOST_FILES.filter((name) => existsSync(name))) {
    rmSync(path.join(root, file), { recursive: true, force: true });
    cpSync(file, path.join(root, file), { recursive: true, dereference: true });
  }
  const cuda = path.join(root, 'usr/local/cuda/lib64');
  mkdirSync(cuda, { recursive: true });
  mkdirSync(path.join(root, 'usr/local/cuda/bin'), { recursive: true });
  execFileSync('gcc', [
    '-shared',
    '-fPIC',
    '-o',
    path.join(cuda, 'libcudart.so.13'),
    path.join(STAND_INS, 'libfabric.c'),
  ]);
  mkdirSync(path.join(root, 'opt/nvidia'), { recursive: true });
  writeFileSync(path.join(root, 'opt/nvidia/nvidia_entrypoint.sh'), '#!/bin/sh\nexec "$@"\n', { mode: 0o755 });
  mkdirSync(path.join(root, 'opt/stand-ins'), { recursive: true });
  cpSync(path.join(work, 'efa.tar.gz'), path.join(root, 'opt/stand-ins/efa.tar.gz'));
  cpSync(path.join(work, 'aws-efa-installer/curl'), path.join(root, 'usr/local/cuda/bin/curl'));
  rmSync(path.join(root, 'var/lib/apt/lists'), { recursive: true, force: true });
  mkdirSync(path.join(root, 'var/lib/apt/lists/partial'), { recursive: true });
  const container = buildah('from', 'scratch').trim();
  buildah('add', '--quiet', container, root, '/');
  // As NVIDIA's images set them.
  buildah(
    'config',
    '--env',
    `PATH=${BASE_PATH}`,
    '--env',
    'LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64',
    container,
  );
  buildah('commit', '--quiet', '--rm', container, BASE);
  rmSync(root, { recursive: true, force: true });
}

/** Builds a Dockerfile as the build project would, with the machine's own package index; answers its exit code and output. */
function build(dockerfile, base, image, context = TRAINING, ...more) {
  const pip = Object.entries(process.env).flatMap(([name, value]) =>
    name.startsWith('PIP_') ? ['--env', `${name}=${value}`] : [],
  );
  const configured = spawnSync('python3', ['-m', 'pip', 'config', 'get', 'global.cert'], {
    encoding: 'utf8',
  }).stdout.trim();
  const named = ['PIP_CERT', 'SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE'].map((name) => process.env[name]);
  const certificates = [configured, ...named].filter((file) => file && existsSync(file));
  const volumes = [...new Set(certificates)].flatMap((file) => ['--volume', `${file}:${file}:ro`]);
  const args = [
    'build',
    '--isolation',
    'chroot',
    '--layers=false',
    '--file',
    path.join(context, dockerfile),
    '--build-arg',
    `BASE_IMAGE=${base}`,
  ];
  const done = spawnSync('buildah', [...storage, ...args, ...pip, ...volumes, ...more, '--tag', image, context], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  return { code: done.status, output: `${done.stdout}${done.stderr}` };
}

/** The context with one file changed: what the build must refuse. */
function changed(file, from, to) {
  const folder = mkdtempSync(path.join(work, 'context-'));
  cpSync(TRAINING, folder, { recursive: true });
  const text = readFileSync(path.join(folder, file), 'utf8');
  if (!text.includes(from)) throw new Error(`${file} no longer has: ${from}`);
  writeFileSync(path.join(folder, file), text.replace(from, to));
  return folder;
}

/** The self-test in a container of a good image after `spoil` has changed it. */
function selfTest(name, spoil, expected) {
  const container = buildah('from', CUDA_IMAGE).trim();
  try {
    for (const script of ['self_test.py', 'install-tools.sh'])
      buildah('copy', '--quiet', container, path.join(TRAINING, 'scripts', script), `/tmp/${script}`);
    const run = (script) =>
      spawnSync('buildah', [...storage, 'run', '--isolation', 'chroot', container, '--', 'sh', '-c', script], {
        encoding: 'utf8',
      });
    const { status, stdout, stderr } = run(`${spoil}; python3 /tmp/self_test.py --output /tmp/versions.json`);
    const ok = expected === undefined ? status === 0 : status === 1 && stderr.includes(expected);
    check(`self-test: ${name}`, ok, ok ? '' : `exit ${status}: ${stdout}${stderr}`.slice(-600));
  } finally {
    buildah('rm', container);
  }
}

function last(output) {
  const lines = output.split('\n').filter((line) => /[!-~]/.test(line));
  return lines.slice(-8).join(' | ').slice(-900);
}

standIns();
process.stdout.write('base: Debian packages and a stub CUDA folder\n');
makeBase();
process.stdout.write('cuda.Dockerfile: every RUN line, PyTorch included\n');
const cuda = build('cuda.Dockerfile', BASE, CUDA_IMAGE);
check('cuda.Dockerfile builds', cuda.code === 0, cuda.code === 0 ? '' : last(cuda.output));
if (cuda.code === 0) {
  selfTest('the image as it was built', 'true');
  selfTest(
    'the plugin under its other name only',
    'rm /opt/amazon/ofi-nccl/lib/libnccl-net.so',
    'libnccl-net.so: must be on the loader',
  );
  selfTest('no plugin', 'rm /opt/amazon/ofi-nccl/lib/*', 'got none there');
  selfTest(
    'no unversioned CUDA runtime',
    'rm /usr/local/cuda/lib64/libcudart.so',
    'libcudart.so: must be on the loader',
  );
  selfTest('libfabric gone', 'rm /opt/amazon/efa/lib/libfabric.so.1', "its libraries must be on the loader's path");
  selfTest(
    'libfabric too old',
    "printf '#!/bin/sh\\necho libfabric: 1.18.0\\n' > /opt/amazon/efa/bin/fi_info",
    'libfabric: must be 1.22 or later',
  );
  selfTest('a variable taken away', 'unset NCCL_PROTO', 'NCCL_PROTO: must be simple');
  selfTest(
    'the S3 connector taken away',
    'rm -r /opt/venv/lib/python3*/site-packages/s3torchconnector-*',
    's3torchconnector: must be',
  );
  selfTest('no PyTorch', 'rm -r /opt/venv/lib/python3*/site-packages/torch', 'import torch: must work');
  process.stdout.write('Dockerfile: the thin layer over an image that has everything\n');
  const thin = build('Dockerfile', CUDA_IMAGE, THIN_IMAGE);
  check('Dockerfile builds', thin.code === 0, thin.code === 0 ? '' : last(thin.output));
}
const noLists = build(
  'cuda.Dockerfile',
  BASE,
  'localhost/bad',
  changed('scripts/install-efa.sh', '  apt-get update\n', ''),
  '--target',
  '1',
);
check(
  'without package lists the installer fails the build',
  noLists.code !== 0 && /Unable to locate package/.test(noLists.output),
  last(noLists.output),
);

const failed = results.filter(({ ok }) => !ok).length;
process.stdout.write(`${results.length - failed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;
