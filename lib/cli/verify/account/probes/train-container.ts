import { DescribeSubnetsCommand, DescribeVpcEndpointsCommand } from '@aws-sdk/client-ec2';
import { HeadObjectCommand } from '@aws-sdk/client-s3';
import { holdsIf, type Probe, probe, unknown } from '../probe';
import { PROBE_OBJECT, STOP_GRACE_SECONDS } from '../train/train-jobs';
import type { EndedJob, Fact, TrainWorld } from '../train/train-world';

const BITS = 32;

const numberOf = (address: string): number | undefined => {
  const bytes = address.split('.').map(Number);
  if (bytes.length !== 4 || bytes.some((byte) => !Number.isInteger(byte) || byte < 0 || byte > 255)) return undefined;
  return bytes.reduce((sum, byte) => sum * 256 + byte, 0);
};

/** Whether an IPv4 address is in a block such as `10.64.0.0/19`; false for other texts. */
export function cidrContains(block: string, address: string): boolean {
  const [base = '', length] = block.split('/');
  const network = numberOf(base);
  const host = numberOf(address);
  if (network === undefined || host === undefined || length === undefined) return false;
  const size = 2 ** (BITS - Number(length));
  return Math.floor(network / size) === Math.floor(host / size);
}

/** Facts that each host of the two-host job reported about itself. */
interface HostFacts {
  config: { current_host?: string; hosts?: string[]; current_instance_type?: string; network_interface_name?: string };
  addresses: Record<string, string>;
  ownAddressBinds: boolean | string;
  uid: number;
  python: string;
  shmGiB: number;
  credentials: boolean;
  channel: string | null;
}

const hostsOf = ({ facts }: EndedJob): { host: string; facts: HostFacts }[] =>
  facts
    .filter(({ values }) => values.config)
    .map(({ host, values }) => ({ host, facts: values as unknown as HostFacts }));

/** A probe that evaluates the output of the facts job's hosts. */
const onHosts = (
  assumption: string,
  expected: string,
  judge: (facts: HostFacts, host: string) => boolean,
  show: keyof HostFacts | ((facts: HostFacts) => unknown),
): Probe<TrainWorld> =>
  probe(assumption, expected, async (world) => {
    const hosts = hostsOf(await world.job('facts'));
    if (hosts.length === 0) return unknown('the log of the job contains no facts of its hosts');
    const shown = (facts: HostFacts) => JSON.stringify(typeof show === 'string' ? facts[show] : show(facts));
    const seen = hosts.map(({ host, facts }) => `${host}: ${shown(facts)}`).join(', ');
    return holdsIf(hosts.length === 2 && hosts.every(({ host, facts }) => judge(facts, host)), seen);
  });

const firstWith = (facts: readonly Fact[], name: string, host: string) =>
  facts.find((fact) => fact.host === host && fact.values[name] !== undefined);

const isAddress = (text: string) => /^[\d.]+$|^[\da-f:]+$/i.test(text);

const HOST_PROBES: readonly Probe<TrainWorld>[] = [
  onHosts(
    'entrypoint-replaces',
    'the script of the request ran on both hosts',
    () => true,
    () => 'ran',
  ),
  onHosts(
    'resource-config',
    'current_host, sorted hosts, current_instance_type, network_interface_name',
    ({ config }, host) =>
      config.current_host === host &&
      JSON.stringify(config.hosts) === '["algo-1","algo-2"]' &&
      Boolean(config.current_instance_type && config.network_interface_name),
    'config',
  ),
  onHosts(
    'host-names',
    'an address for algo-1 and algo-2 on both hosts',
    ({ addresses }) => Object.values(addresses).length === 2 && Object.values(addresses).every(isAddress),
    'addresses',
  ),
  onHosts(
    'own-address',
    'a socket can be bound to the address of the host',
    (f) => f.ownAddressBinds === true,
    'ownAddressBinds',
  ),
  onHosts('container-root', 'user id 0', ({ uid }) => uid === 0, 'uid'),
  onHosts(
    'shared-memory',
    '/dev/shm of at least 1 GiB',
    ({ shmGiB }) => shmGiB >= 1,
    ({ shmGiB }) => `${shmGiB} GiB`,
  ),
  onHosts('container-credentials', 'a credentials endpoint in the environment', (f) => f.credentials, 'credentials'),
  onHosts(
    'bash-and-python',
    'bash, and python3 3.8 or later',
    ({ python }) => Number(python.split('.')[1]) >= 8,
    ({ python, channel }) => `python ${python}, channel ${channel === PROBE_OBJECT.content ? 'read' : 'not read'}`,
  ),
];

const LEAST_GRACE_SECONDS = STOP_GRACE_SECONDS - 15;

export const CONTAINER_PROBES: readonly Probe<TrainWorld>[] = [
  ...HOST_PROBES,
  probe('sigterm-first-process', 'the first process received SIGTERM on both hosts', async (world) => {
    const { facts } = await world.job('facts');
    const hosts = ['algo-1', 'algo-2'].filter((host) => firstWith(facts, 'sigterm', host));
    return holdsIf(hosts.length === 2, hosts.length > 0 ? `on ${hosts.join(' and ')}` : 'on neither host');
  }),
  probe('stop-grace', `at least ${LEAST_GRACE_SECONDS} s between SIGTERM and SIGKILL`, async (world) => {
    const { facts } = await world.job('facts');
    const alive = facts.filter(({ host, values }) => host === 'algo-1' && values.alive !== undefined);
    const last = alive.at(-1)?.values.alive;
    if (typeof last !== 'number') return unknown('the log contains no count');
    return holdsIf(last >= LEAST_GRACE_SECONDS, `${last} s, counted every 5 s`);
  }),
  probe('output-after-stop', 'output of the stopped job in S3', async (world) => {
    await world.job('facts');
    const keys = await world.keys('artifact');
    const found = keys.filter((key) => /\/output\/.*(output\.tar\.gz|algo-\d\.txt)$/.test(key));
    const names = found.map((key) => key.split('/').slice(3).join('/')).join(', ');
    return holdsIf(found.length > 0, names || `not among ${keys.length} objects`);
  }),
  probe('checkpoint-sync', 'the file of each host', async (world) => {
    await world.job('facts');
    const keys = (await world.keys('checkpoint')).filter((key) => /\/facts\/.*algo-[12]\.txt$/.test(key));
    return holdsIf(keys.length === 2, keys.map((key) => key.split('/').pop()).join(', ') || 'none');
  }),
  probe(
    'checkpoint-restore',
    'step-12.txt of the crashed job, before the script of the next one starts',
    async (world) => {
      const { facts, description } = await world.job('resume');
      const restored = facts.find((fact) => fact.values.restored !== undefined)?.values.restored;
      if (restored === undefined) return unknown(`${description.TrainingJobStatus}, and the log contains no result`);
      return holdsIf(String(restored).includes('step-12.txt'), `"${restored}"`);
    },
  ),
  probe('checkpoint-key', 'checkpoint objects encrypted with the key of the environment', async (world) => {
    const { descriptor } = world.place;
    await world.job('crash');
    const [Key] = (await world.keys('checkpoint')).filter((key) => /\/resume\//.test(key));
    if (!Key || !descriptor.kmsKeyArn) return unknown(Key ? 'the environment has no key' : 'no checkpoint object');
    const head = await world.s3.send(new HeadObjectCommand({ Bucket: descriptor.checkpointBucket, Key }));
    const same = head.SSEKMSKeyId === descriptor.kmsKeyArn;
    return holdsIf(same, same ? 'the same key' : `${head.ServerSideEncryption ?? 'no encryption'} with another key`);
  }),
  probe('log-streams', 'streams <job>/algo-<n>-<number> of both hosts', async (world) => {
    const { streams } = await world.job('facts');
    const good = streams.filter((name) => /\/algo-[12]-\d+$/.test(name));
    return holdsIf(
      good.length === 2 && streams.length === 2,
      streams.map((s) => s.split('/').pop()).join(', ') || 'none',
    );
  }),
  probe('one-zone', 'both hosts in one subnet', async (world) => {
    const { subnetIds } = world.place.descriptor;
    if (subnetIds.length < 2) return unknown(`the environment has ${subnetIds.length} subnets`);
    const [host] = hostsOf(await world.job('facts'));
    const { Subnets = [] } = await world.ec2.send(new DescribeSubnetsCommand({ SubnetIds: subnetIds }));
    const homes = Object.values(host?.facts.addresses ?? {}).map(
      (address) => Subnets.find(({ CidrBlock = '' }) => cidrContains(CidrBlock, address))?.SubnetId,
    );
    if (homes.length < 2 || homes.includes(undefined))
      return unknown('the addresses of the hosts are not in a subnet of the environment');
    return holdsIf(new Set(homes).size === 1, `${new Set(homes).size} subnets`);
  }),
  probe(
    'pull-outside-vpc',
    'a job in a network without endpoints for ECR and CloudWatch Logs starts and has a log',
    async (world) => {
      const { description, streams } = await world.job('facts');
      if (world.place.descriptor.network?.mode !== 'vpc-locked') return unknown('the network is not locked');
      const ids = await world.resourcesOf('AWS::EC2::VPCEndpoint');
      const { VpcEndpoints = [] } =
        ids.length === 0 ? {} : await world.ec2.send(new DescribeVpcEndpointsCommand({ VpcEndpointIds: ids }));
      const services = VpcEndpoints.flatMap(
        ({ ServiceName }) => /\.(ecr\.\w+|logs)$/.exec(ServiceName ?? '')?.[1] ?? [],
      );
      if (services.length > 0) return unknown(`the network has endpoints for ${services.join(', ')}`);
      return holdsIf(
        description.TrainingStartTime !== undefined && streams.length > 0,
        `${description.TrainingJobStatus}, ${streams.length} log streams`,
      );
    },
  ),
];
