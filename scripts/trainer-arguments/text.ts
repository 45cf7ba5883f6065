import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { camelCase } from '../../lib/core/catalog/model/config-rope';

const CONTAINERS = path.join(__dirname, '../../containers');
const MODULES = ['trainer', 'driver'].map((name) => path.join(CONTAINERS, name)).join(path.delimiter);
const PROGRAM = `
import json
from slipway_trainer.arguments import options
from slipway_trainer.fetch.arguments import options as fetch_options
from slipway_trainer.tokenize.arguments import options as tokenize_options
programs = {"builtin": options, "builtin-tokenize": tokenize_options, "builtin-fetch": fetch_options}
print(json.dumps({name: options().described() for name, options in programs.items()}))
`;

const CONSTANTS = `
import json
from slipway_trainer.architecture import ACTIVATIONS, NORMS, PACKED_BLOCK
from slipway_trainer.arguments import LOGITS_OF_CHUNK
from slipway_trainer.limits import NF4_SINCE
from slipway_trainer.checkpoint import interval
from slipway_trainer.checkpoint.memory_plan import SHARE_OF_FREE
from slipway_trainer.fetch.arguments import AT_ONCE
from slipway_trainer.limits import OF_EXPERTS
from slipway_trainer.architecture_parts import ALLOWED, NEEDED, RopeScaling
from slipway_trainer.tokenize.rows import COMPRESSED, DESCRIPTIONS, LINES, TABLES
print(json.dumps({
    "copiesShareOfMemory": SHARE_OF_FREE,
    "copiesShareOfTime": interval.MAX_OVERHEAD,
    "failuresPerNodeDay": {
        "llama3": interval.LLAMA3_PER_NODE_DAY,
        "rsc1Nodes": interval.RSC1_PER_NODE_DAY,
        "rsc1Jobs": interval.RSC1_JOBS_PER_NODE_DAY,
    },
    "failurePrior": {"failures": interval.PRIOR_FAILURES, "perNodeDay": interval.PRIOR_PER_NODE_DAY},
    "lostMachineShare": interval.LOST_MACHINES,
    "endedShare": {"withSpares": interval.ended_share(True), "withoutSpares": interval.ended_share(False)},
    "savesSlowdown": interval.WRITING_SLOWDOWN,
    "saveIntervalMinutes": [interval.SHORTEST_MINUTES, interval.LONGEST_MINUTES],
    "filesFetchedAtOnce": AT_ONCE,
    "rowFiles": {"lines": LINES, "compressed": COMPRESSED, "tables": TABLES, "descriptions": DESCRIPTIONS},
    "logitsOfChunk": LOGITS_OF_CHUNK,
    "elementsPerScale": PACKED_BLOCK,
    "nf4SincePytorch": ".".join(map(str, NF4_SINCE)),
    "expertLayers": OF_EXPERTS,
    "norms": NORMS,
    "activations": ACTIVATIONS,
    "ropeDefaults": {
        kind: {name: getattr(RopeScaling, name) for name in ALLOWED.get(kind, ()) if getattr(RopeScaling, name) is not None} for kind in NEEDED
    },
    "ropeScalings": {kind: {"needed": names, "allowed": ALLOWED.get(kind, ())} for kind, names in NEEDED.items()},
}))
`;

/** The text of lib/core/catalog/builtin-arguments.json. Needs python3, not PyTorch. */
export function builtinArguments(): string {
  const found = JSON.parse(printed(PROGRAM));
  const lines = Object.entries<Record<string, Record<string, unknown>>>(found).map(([program, options]) => {
    const rows = Object.entries(options).map(([name, kind]) => {
      const facts = Object.entries(kind).map(([key, value]) => `"${camelCase(key)}": ${valueText(value)}`);
      return `    "${name}": { ${facts.join(', ')} }`;
    });
    return `  "${program}": {\n${rows.join(',\n')}\n  }`;
  });
  return `{\n${lines.join(',\n')}\n}\n`;
}

/** The text of lib/core/catalog/trainer-constants.json: constants of the trainer by which runs are planned. */
export const trainerConstants = (): string => `${JSON.stringify(JSON.parse(printed(CONSTANTS)), null, 2)}\n`;

function printed(program: string): string {
  const env = { ...process.env, PYTHONPATH: MODULES, PYTHONDONTWRITEBYTECODE: '1' };
  return execFileSync('python3', ['-c', program], { encoding: 'utf8', env });
}

const valueText = (value: unknown): string =>
  Array.isArray(value) ? `[${value.map((one) => JSON.stringify(one)).join(', ')}]` : JSON.stringify(value);
