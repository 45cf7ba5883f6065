import { findInstanceType, hasEfa } from '../../catalog/instances/instances';
import { hostCount, instanceGroupsOf } from '../../config/resolve-run';
import { type Rule, rule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';

const hosts = (run: RunSpec) => hostCount(instanceGroupsOf(run.compute));
const efaType = (run: RunSpec) => instanceGroupsOf(run.compute).find((g) => hasEfa(g.instanceType));

/**
 * Values that driver and plugin choose by instance type and version; setting them is allowed and reported. Source: docs/facts/efa.md 2.3.
 */
const EFA_VARIABLES = [
  'FI_PROVIDER',
  'NCCL_PROTO',
  'FI_EFA_USE_DEVICE_RDMA',
  'NCCL_ALGO',
  'NCCL_SOCKET_IFNAME',
  'NCCL_IB_DISABLE',
  'RDMAV_FORK_SAFE',
  'FI_EFA_FORK_SAFE',
  'FI_EFA_SET_CUDA_SYNC_MEMOPS',
  'FI_EFA_ENABLE_SHM_TRANSFER',
  'NCCL_NET_PLUGIN',
  'NCCL_TUNER_PLUGIN',
  'NCCL_BUFFSIZE',
  'NCCL_P2P_NET_CHUNKSIZE',
  'NCCL_NVLSTREE_MAX_CHUNKSIZE',
  'NCCL_NVLS_CHUNKSIZE',
  'NCCL_NVLS_ENABLE',
  'NCCL_NET_FORCE_FLUSH',
  'NCCL_NETDEVS_POLICY',
  'NCCL_TOPO_FILE',
  'NCCL_LAUNCH_MODE',
  'NCCL_NET_SHARED_COMMS',
  'NCCL_MIN_NCHANNELS',
  'NCCL_MIN_NRINGS',
  'OFI_NCCL_PROTOCOL',
  'OFI_NCCL_DISABLE_GDR_REQUIRED_CHECK',
  'OFI_NCCL_DISABLE_DMABUF',
  'OFI_NCCL_NIC_DUP_CONNS',
];

/** Rules for EFA, encryption between containers, and network isolation. */
export const NETWORK_RULES: readonly Rule[] = [
  rule('network/encryption-with-efa', 'error, may acknowledge', (run) => {
    if (!run.network.interContainerEncryption) return [];
    const path = 'network.interContainerEncryption';
    const efa = efaType(run);
    if (hosts(run) === 1)
      return { path, level: 'warning', must: 'must be off for one instance, where it has no effect' };
    return when(efa !== undefined && run.network.efa !== 'off', path, {
      must: `must be off on ${efa?.instanceType} with EFA: it covers IP traffic only, and EFA bypasses it`,
      fix: 'set network.efa: off to use encrypted sockets, or acknowledge network/encryption-with-efa',
    });
  }),
  rule('network/efa-required', 'error', (run) => {
    const { written } = run;
    if (written.network?.efa !== 'required') return [];
    const types = instanceGroupsOf(run.compute);
    const without = types.find((g) => findInstanceType(g.instanceType)?.efaInterfaces === 0);
    return [
      ...when(types.length > 0 && !efaType(run) && without !== undefined, 'network.efa', {
        must: `must be preferred or off on ${without?.instanceType}, which has no EFA`,
        fix: 'remove it, or use an EFA type',
      }),
      ...when(hosts(run) === 1 && efaType(run) !== undefined, 'network.efa', {
        level: 'info',
        must: 'must not be required for one instance, where it has no effect',
      }),
    ];
  }),
  rule('network/pinned-efa-variables', 'warning, may acknowledge', (run) =>
    EFA_VARIABLES.filter((name) => name in run.environmentVariables).map((name) => ({
      path: `environmentVariables.${name}`,
      must: 'should be left to network.efaVariables: auto',
      fix: 'remove it unless you measured it',
    })),
  ),
  /** The settings of 2023 were written for p4d. They force device RDMA, which aborts on hosts without it. */
  rule('network/guide-2023', 'warning', (run) => {
    if (run.network.efaVariables !== 'guide-2023') return [];
    return instanceGroupsOf(run.compute)
      .filter(({ instanceType }) => findInstanceType(instanceType) && !/^ml\.p4de?\./.test(instanceType))
      .map(({ instanceType }) => ({
        path: 'network.efaVariables',
        ...(findInstanceType(instanceType)?.gpuDirectRdma === false && { level: 'error' as const }),
        must: `must be auto on ${instanceType}: the values from 2023 are for ml.p4d and ml.p4de`,
        fix: 'use auto',
      }));
  }),
  /** libfabric aborts the program if device RDMA is required but not available. */
  rule('network/device-rdma', 'error', ({ compute, environmentVariables }) => {
    const without = instanceGroupsOf(compute).find(
      ({ instanceType: type }) => hasEfa(type) && !findInstanceType(type)?.gpuDirectRdma,
    );
    const isForced = environmentVariables.FI_EFA_USE_DEVICE_RDMA === '1' && without !== undefined;
    return when(isForced, 'environmentVariables.FI_EFA_USE_DEVICE_RDMA', {
      must: `must not be 1 on ${without?.instanceType}, whose EFA has no RDMA: the program would abort`,
      fix: 'remove it: libfabric selects the value',
    });
  }),
  rule('network/isolated-tools', 'error', (run) => {
    if (!run.network.isolation) return [];
    return [
      ...when(run.observability.mlflow !== undefined, 'observability.mlflow', {
        must: 'must be absent with network.isolation',
        got: run.observability.mlflow?.arn,
        fix: 'remove one of the two',
      }),
      ...when(run.observability.wandb !== undefined, 'observability.wandb', {
        must: 'must be absent with network.isolation',
        got: run.observability.wandb?.project,
        fix: 'remove one of the two',
      }),
      ...when(run.observability.remoteDebug, 'observability.remoteDebug', {
        must: 'must be false with network.isolation',
        fix: 'remove one of the two',
      }),
    ];
  }),
  rule('observability/wandb', 'error', (run, { descriptor }) => {
    const { wandb: tracker } = run.observability;
    if (!tracker) return [];
    // Without the driver nothing reads `secrets`; with another contract the script must fetch its key itself.
    const hasKey =
      run.distribution.contract !== 'entrypoint' ||
      [run.secrets, run.environmentVariables].some((named) => named?.WANDB_API_KEY !== undefined);
    const isLocked = descriptor?.network?.mode === 'vpc-locked';
    // In offline mode the client writes files and contacts no server.
    if (run.environmentVariables.WANDB_MODE === 'offline') return [];
    return [
      ...when(!hasKey, 'observability.wandb', {
        must: 'must be used with the secret that contains the API key',
        got: 'no secrets.WANDB_API_KEY',
        fix: 'add secrets: { WANDB_API_KEY: <name of the secret> }',
      }),
      ...when(isLocked && tracker.baseUrl === undefined, 'observability.wandb.baseUrl', {
        must: `must be a server that the network of environment ${descriptor?.name} can reach: it has no internet access`,
        got: 'none',
        fix: 'use your own server, launch into an environment with network.mode vpc-nat, or use observability.mlflow',
      }),
    ];
  }),
  rule('observability/profiler', 'warning, local', (run) =>
    when(run.observability.profiler === 'sagemaker', 'observability.profiler', {
      must: 'must be off for accounts without Debugger',
      fix: 'use pytorch, or off and torch.profiler in custom code',
    }),
  ),
  rule('observability/pytorch-profiler', 'warning', (run) =>
    when(run.observability.profiler === 'pytorch' && run.code.builtin !== 'builtin', 'observability.profiler', {
      must: 'must be off with custom code',
      fix: 'use off, and torch.profiler in the script',
    }),
  ),
];
