import { findInstanceType } from '../catalog/instances';
import { instanceGroupsOf } from '../spec/resolve-run';
import type { RunSpec } from '../spec/run-spec';
import { type Finding, guide, type Rule, when } from './rule';

const hosts = (run: RunSpec) => instanceGroupsOf(run.compute).reduce((sum, g) => sum + g.instanceCount, 0);
const efaType = (run: RunSpec) =>
  instanceGroupsOf(run.compute).find((g) => (findInstanceType(g.instanceType)?.efaInterfaces ?? 0) > 0);

function encryption(run: RunSpec): Finding[] {
  if (!run.network.interContainerEncryption) return [];
  const path = 'network.interContainerEncryption';
  const efa = efaType(run);
  if (hosts(run) === 1)
    return [
      {
        path,
        level: 'warning',
        must: 'must be off for one instance, where it has no effect',
        got: true,
        fix: 'remove it',
      },
    ];
  return when(efa !== undefined && run.network.efa !== 'off', {
    path,
    must: `must be off on ${efa?.instanceType} with EFA: it covers IP traffic only, and EFA bypasses it`,
    got: true,
    fix: 'set network.efa: off to go over encrypted sockets, or acknowledge network/encryption-with-efa',
  });
}

function requiredEfa(run: RunSpec): Finding[] {
  const { written } = run;
  if (written.network?.efa !== 'required') return [];
  const types = instanceGroupsOf(run.compute);
  const without = types.find((g) => findInstanceType(g.instanceType)?.efaInterfaces === 0);
  return [
    ...when(types.length > 0 && !efaType(run) && without !== undefined, {
      path: 'network.efa',
      must: `must be preferred or off on ${without?.instanceType}, which has no EFA`,
      got: 'required',
      fix: 'remove it, or use an EFA type',
    }),
    ...when(hosts(run) === 1 && efaType(run) !== undefined, {
      path: 'network.efa',
      level: 'info',
      must: 'has no meaning for one instance',
      got: 'required',
      fix: 'remove it',
    }),
  ];
}

/** Variables that the driver decides by instance type and library version; pinning them is allowed and said. */
const EFA_VARIABLES = [
  'FI_PROVIDER',
  'NCCL_PROTO',
  'FI_EFA_USE_DEVICE_RDMA',
  'NCCL_ALGO',
  'NCCL_SOCKET_IFNAME',
  'NCCL_IB_DISABLE',
  'RDMAV_FORK_SAFE',
  'FI_EFA_FORK_SAFE',
];

export const NETWORK_RULES: readonly Rule[] = [
  {
    id: 'network/encryption-with-efa',
    level: 'error',
    mayAcknowledge: true,
    what: 'Encryption between containers is not combined with EFA.',
    why: 'IPsec cannot cover traffic that bypasses the kernel: it stays unencrypted, or falls back to sockets.',
    source: guide('train-encrypt'),
    check: encryption,
  },
  {
    id: 'network/efa-required',
    level: 'error',
    what: 'efa: required needs a type with EFA.',
    why: 'The run would end itself with code 74.',
    source: guide('your-algorithms-training-efa'),
    check: requiredEfa,
  },
  {
    id: 'network/pinned-efa-variables',
    level: 'warning',
    mayAcknowledge: true,
    what: 'EFA and NCCL variables of the run file win over ours.',
    why: 'A value that was right for p4d harms p5 and later.',
    source: 'facts/efa.md',
    check: (run) =>
      EFA_VARIABLES.filter((name) => name in run.environmentVariables).map((name) => ({
        path: `environmentVariables.${name}`,
        must: 'is best left to network.efaVariables: auto',
        got: run.environmentVariables[name],
        fix: 'remove it unless you measured it',
      })),
  },
  {
    id: 'network/isolated-tools',
    level: 'error',
    what: 'A network-isolated job has no MLflow and no remote debug.',
    why: 'The container reaches nothing but its peers.',
    source: guide('mkt-algo-model-internet-free'),
    check: (run) => {
      if (!run.network.isolation) return [];
      return [
        ...when(run.observability.mlflow !== undefined, {
          path: 'observability.mlflow',
          must: 'must be absent with network.isolation',
          got: run.observability.mlflow?.arn,
          fix: 'remove one of the two',
        }),
        ...when(run.observability.remoteDebug, {
          path: 'observability.remoteDebug',
          must: 'must be false with network.isolation',
          got: true,
          fix: 'remove one of the two',
        }),
      ];
    },
  },
  {
    id: 'observability/profiler',
    level: 'warning',
    isLocal: true,
    what: 'profiler: sagemaker uses a service that is closed to new customers.',
    why: 'Debugger was closed on 2026-07-30.',
    source: guide('debugger-availability-change'),
    check: (run) =>
      when(run.observability.profiler === 'sagemaker', {
        path: 'observability.profiler',
        must: 'must be off or pytorch for accounts without Debugger',
        got: 'sagemaker',
        fix: 'use pytorch',
      }),
  },
];
