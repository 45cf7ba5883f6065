import { parameterShape } from '../../catalog/model/parameters';
import { channelFolder } from '../../config/formats/places';
import { orList } from '../../config/issue';
import { hostCount, trainingGroupsOf } from '../../config/resolve-run';
import { type Rule, rule, trainingRule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { canKeepCopies, copiesMemory, memoryCopies, stateBytes } from '../../distribution/memory-copies';
import { modesBesideManaged } from '../own-code';
import { entryFile } from './code-folder';

/** Managed checkpoints are copied to every instance at each start; above this size the copy takes longer than most restarts. */
const MANAGED_LIMIT_GIB = 100;

/** Arguments that tell transformers, TRL, Megatron-LM, Lightning and torchtitan where to save. */
const SAVES_TO = /^(output[-_]dir|save|save[-_]dir|checkpoint[-_]dir|(trainer\.)?default_root_dir|job\.dump_folder)$/;

/** Folders of the container that outlive its instances, first the one for checkpoints; empty while the channel of fsx is not known. */
function keptFolders({ checkpoints: { mode, localPath, channel }, data }: RunSpec): string[] {
  const writable = data.filter(({ fsxLustre, efs }) => (fsxLustre ?? efs)?.access === 'rw');
  const mounts = writable.map((one) => channelFolder(one.channel));
  if (mode === 'managed') return [localPath, ...mounts];
  if (mode === 'fsx') return channel === undefined ? [] : [channelFolder(channel), ...mounts];
  return ['/opt/ml/model', '/opt/ml/output/data', ...mounts];
}

export const CHECKPOINT_RULES: readonly Rule[] = [
  rule('checkpoints/fsx', 'error', (run) => {
    const { mode, channel } = run.checkpoints;
    if (mode !== 'fsx') {
      return when(run.written.checkpoints?.channel !== undefined, 'checkpoints.channel', {
        must: 'must be used with mode fsx',
        fix: 'use mode: fsx, or remove it',
      });
    }
    const candidates = run.data.filter((c) => c.fsxLustre);
    if (channel === undefined)
      return {
        path: 'checkpoints.channel',
        must: 'must be an fsxLustre channel with access rw',
        got: candidates.map((c) => c.channel),
        fix: 'add channel: <name>, and the channel under data',
      };
    const found = candidates.find((c) => c.channel === channel);
    if (!found)
      return {
        path: 'checkpoints.channel',
        must: 'must be an fsxLustre channel of data',
        fix: 'add the channel under data',
      };
    return when((found.fsxLustre?.access ?? 'ro') !== 'rw', `data[${run.data.indexOf(found)}].fsxLustre.access`, {
      must: 'must be rw for checkpoints',
      got: found.fsxLustre?.access ?? 'ro (default)',
      fix: 'use access: rw',
    });
  }),
  rule('checkpoints/local-path', 'error, local', (run) => {
    const given = run.written.checkpoints?.localPath;
    if (given === undefined) return [];
    const reserved = ['/opt/ml/input', '/opt/ml/output', '/opt/ml/model', '/opt/ml/code'];
    const isReserved = reserved.some((p) => given === p || given.startsWith(`${p}/`));
    return [
      ...when(run.checkpoints.mode !== 'managed', 'checkpoints.localPath', {
        level: 'warning',
        must: 'must be used with mode managed',
      }),
      ...when(!given.startsWith('/'), 'checkpoints.localPath', {
        must: 'must be an absolute path',
        fix: 'use /opt/ml/checkpoints',
      }),
      ...when(isReserved, 'checkpoints.localPath', {
        must: 'must not be in a folder that SageMaker uses for another purpose',
        fix: 'use /opt/ml/checkpoints',
      }),
    ];
  }),
  rule('checkpoints/managed-too-large', 'error, may acknowledge', (run) => {
    if (run.checkpoints.mode !== 'managed' || !run.model) return [];
    const modes = modesBesideManaged(run);
    const gib = stateBytes(run.training, parameterShape(run.model.architecture)) / 2 ** 30;
    return when(gib > MANAGED_LIMIT_GIB, 'checkpoints.mode', {
      must: `must be ${orList(modes)} for a checkpoint of about ${Math.round(gib)} GiB: managed ones are copied to every instance at each start`,
      fix: `use mode: ${modes[0]}`,
    });
  }),
  rule('checkpoints/spot-without', 'error, may acknowledge', (run) =>
    when(run.compute.capacity === 'spot' && run.checkpoints.mode === 'none', 'checkpoints.mode', {
      must: 'must not be none with capacity spot',
      fix: `use mode managed or ${modesBesideManaged(run)[0]}, or acknowledge checkpoints/spot-without`,
    }),
  ),
  rule('checkpoints/isolated-direct', 'error', (run) =>
    when(run.network.isolation && run.checkpoints.mode === 'direct', 'checkpoints.mode', {
      must: 'must be managed, fsx or none with network.isolation',
      fix: 'use mode: managed',
    }),
  ),
  rule('checkpoints/keep', 'warning', (run) =>
    when(run.written.checkpoints?.keep === 1 && run.checkpoints.mode !== 'none', 'checkpoints.keep', {
      must: 'must be at least 2 to survive a damaged checkpoint',
      fix: 'use 2 or more',
    }),
  ),
  /** Findings for copies that are asked for; `auto` leaves them out where they are not possible. */
  rule('checkpoints/memory', 'error', (run) => {
    const { memory: given, mode } = run.checkpoints;
    if (given === undefined || given === 'auto' || given === 'off') return [];
    const path = 'checkpoints.memory';
    if (!canKeepCopies(run))
      return {
        path,
        must: 'must be off without the built-in trainer with distribution.library fsdp or ddp, or a script under torchrun',
      };
    const copies = memoryCopies(run);
    const { gib = 0, availableGiB = 0 } = (copies && copiesMemory(run, copies)) ?? {};
    return [
      ...when(mode === 'none', path, { must: 'must be off with checkpoints.mode none', fix: 'use another mode' }),
      ...when(given.copies === 2 && hostCount(trainingGroupsOf(run)) < 2, `${path}.copies`, {
        must: 'must be 1 on a single host: the other copy would be on another host',
        fix: 'use 1, or two or more instances',
      }),
      ...when(gib > availableGiB, path, {
        must: `must fit in the ${Math.floor(availableGiB)} GiB that copies may use on each host`,
        got: `${Math.ceil(gib)} GiB`,
        fix: 'use copies: 1, more instances, or off',
      }),
    ];
  }),
  rule('checkpoints/unused', 'warning', (run) => {
    const given = Object.keys(run.written.checkpoints ?? {}).filter((key) => !['mode', 'startFrom'].includes(key));
    return when(run.written.checkpoints?.mode === 'none' && given.length > 0, 'checkpoints.mode', {
      must: `must not be none when ${given.join(', ')} is set`,
      fix: 'use another mode, or remove them',
    });
  }),
  rule('checkpoints/lost-output', 'warning, may acknowledge', (run, { codeFolder }) => {
    const { code, checkpoints } = run;
    if (code.builtin || checkpoints.mode === 'direct') return [];
    const kept = keptFolders(run);
    if (kept.length === 0) return [];
    const isKept = (place: string) =>
      place.includes('://') || kept.some((folder) => `${place}/`.startsWith(`${folder}/`));
    const isNone = checkpoints.mode === 'none';
    const why = isNone ? 'other folders are lost with the instances' : 'no attempt resumes from other folders';
    const fix = `use ${kept[0]}${isNone ? ', or /opt/ml/checkpoints with checkpoints.mode managed' : ''}`;
    const places = Object.entries(code.arguments).filter(([key]) => SAVES_TO.test(key));
    const savesTo = places.length > 0 ? undefined : entryFile(run, codeFolder)?.savesTo;
    return [
      ...places.flatMap(([key, value]) => {
        const isPlace = typeof value === 'string' && (key !== 'save' || value.includes('/'));
        return when(isPlace && !isKept(String(value)), `code.arguments.${key}`, {
          must: `must be in ${kept[0]}: ${why}`,
          fix,
        });
      }),
      ...when(savesTo !== undefined && !isKept(savesTo), 'code.entryPoint', {
        must: `must save in ${kept[0]}: ${why}`,
        got: `${savesTo} in ${code.entryPoint}`,
        fix,
      }),
    ];
  }),
  rule('checkpoints/start-from', 'error, local', (run) => {
    const from = run.checkpoints.startFrom;
    return when(from !== undefined && !/^(s3:\/\/.+|[a-z0-9][a-z0-9-]*-\d{12})$/.test(from), 'checkpoints.startFrom', {
      must: 'must be a run id (<name>-<yymmddhhmmss>) or s3://...',
      fix: 'use an id from slipway list',
    });
  }),
].map(trainingRule);
