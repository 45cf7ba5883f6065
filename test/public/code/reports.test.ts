// Situations of test/public/code.md: folders of code as their reporters had them, checked and packed as `launch` does.
import { chmodSync, mkdirSync, mkdtempSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkRunFile, readGiven } from '../../../lib/cli/inputs';
import type { Descriptor } from '../../../lib/core/config/descriptor';
import { flagArguments } from '../../../lib/core/distribution/strategy';
import { codeFiles } from '../../../lib/shared/archive/code-files';
import { draws } from '../../support/draws';
import { DESCRIPTOR } from '../../support/runs';

/** Content of a file, `->` and the target of a link, or a number of bytes. */
type Folder = Record<string, string | number | Buffer>;

interface Given {
  files?: Folder;
  /** Other fields of `code`. */
  code?: object;
  distribution?: object;
  also?: object;
  environment?: Partial<Descriptor>;
}

const TOOLKIT = { library: 'ddp', contract: 'toolkit' };
const TOOLKIT_SCRIPT = { library: 'custom', contract: 'toolkit', launcher: 'script' };

/** What `validate` says of the run, with the names that would be packed. */
function tried({ files = {}, code, distribution = { library: 'ddp' }, also, environment }: Given) {
  const repository = mkdtempSync(path.join(tmpdir(), 'slipway-public-'));
  mkdirSync(path.join(repository, '.git'));
  for (const [name, content] of Object.entries({ 'code/train.py': 'print("step=1")\n', ...prefixed(files) }))
    make(path.join(repository, name), content);
  const run = path.join(repository, 'run.yaml');
  const file = {
    name: 'public',
    code: { source: './code', entryPoint: 'train.py', ...code },
    compute: { instanceType: 'ml.g5.12xlarge', instanceCount: 2 },
    image: { kind: 'dlc', version: '2.13' },
    distribution,
    limits: { maxRuntimeSeconds: 3600, maxCostUsd: 100 },
    ...also,
  };
  writeFileSync(run, JSON.stringify(file));
  const { issues } = checkRunFile(readGiven(run), {}, { ...DESCRIPTOR, ...environment });
  const packed = codeFiles(path.join(repository, 'code')).files;
  const said = issues
    .filter(({ rule }) => /^(code|data|checkpoints)\//.test(rule))
    .map(({ level, rule }) => `${level} ${rule}`);
  const schema = issues.filter(({ rule }) => rule.startsWith('schema/')).map(({ message }) => message);
  return { said, schema, packed };
}

/** Files of the code folder; a name that begins with / is beside it. */
const prefixed = (files: Folder): Folder =>
  Object.fromEntries(
    Object.entries(files).map(([name, content]) => [name.startsWith('/') ? name.slice(1) : `code/${name}`, content]),
  );

function make(file: string, content: string | number | Buffer): void {
  mkdirSync(path.dirname(file), { recursive: true });
  if (typeof content === 'number') {
    writeFileSync(file, '');
    truncateSync(file, content);
  } else if (typeof content === 'string' && content.startsWith('->')) symlinkSync(content.slice(2), file);
  else writeFileSync(file, content);
}

/** A script whose parser takes every text for true. */
const BOOLS = [
  'import argparse',
  'parser = argparse.ArgumentParser()',
  'parser.add_argument("--on", type=bool, default=True, help="a switch (on)")',
  "parser.add_argument('-o', '--off', help='off', type=bool,",
  '                    default=False)',
  '# parser.add_argument("--comment", type=bool)',
  'parser.add_argument("--parsed", type=str2bool, default=True)',
].join('\n');

test.each<[source: string, given: Given, said: string[]]>([
  [
    'aws/sagemaker-python-sdk#5906: a link to a file outside the folder',
    { files: { 'host.txt': '->/etc/hostname' } },
    ['warning code/outside-links'],
  ],
  [
    'skypilot-org/skypilot#814: a link to the folder that it is in',
    { files: { mylink: '->.' } },
    ['error code/folder'],
  ],
  ['pantsbuild/pants#16319: a link to itself', { files: { self: '->self' } }, ['error code/folder']],
  [
    'dstackai/dstack#728: code beyond the limit',
    { files: { 'model.bin': 600_000_000 } },
    ['error code/folder', 'warning code/size'],
  ],
  ['ray-project/ray#45818: a large working directory', { files: { 'model.bin': 110_000_000 } }, ['warning code/size']],
  [
    'pytorch/pytorch#7575: a script named torch.py',
    { files: { 'torch.py': '' }, code: { entryPoint: 'torch.py' } },
    ['warning code/shadowed-packages'],
  ],
  [
    'mosaicml/llm-foundry#175: datasets.py beside the script',
    { files: { 'datasets.py': '' } },
    ['warning code/shadowed-packages'],
  ],
  [
    'aws/sagemaker-training-toolkit#54: setup.py, and the entry point in a folder',
    {
      files: { 'setup.py': '', 'src/my_package/train.py': '' },
      code: { entryPoint: 'src/my_package/train.py' },
      distribution: TOOLKIT_SCRIPT,
    },
    ['error code/toolkit-package'],
  ],
  [
    'aws/sagemaker-pytorch-training-toolkit#189: requirements.txt that nobody installs',
    { files: { 'requirements.txt': 'pytorch-ignite' } },
    ['warning code/not-installed'],
  ],
  [
    'huggingface/accelerate#980: flags of argparse under the toolkit',
    { code: { arguments: { with_tracking: true, fp16: false } }, distribution: TOOLKIT },
    ['warning code/argument-form'],
  ],
  [
    'awslabs/graphstorm#676: part1 also selects part10',
    { also: { data: [{ channel: 'train', s3: 's3://{dataBucket}/graph/part1' }] } },
    ['warning data/whole-folder'],
  ],
  [
    'aws/sagemaker-python-sdk#2875: personal secrets that git ignores',
    { files: { '.env': 'KEY=1', id_ed25519: '-----BEGIN OPENSSH PRIVATE KEY-----\n' } },
    ['error code/secrets', 'warning code/secrets'],
  ],
  [
    'huggingface/evaluate#609: a script named evaluate.py',
    { files: { 'evaluate.py': '' }, code: { entryPoint: 'evaluate.py' } },
    ['warning code/shadowed-packages'],
  ],
  [
    'OpenLLM-Ro/llama-recipes#1: a token of Hugging Face in the code',
    { files: { 'train.py': `load(use_auth_token="hf_${'Ab'.repeat(17)}")` } },
    ['error code/secrets'],
  ],
  [
    'microsoft/bert-stack-overflow#60: models that were downloaded into the folder',
    { files: { 'models/bert.bin': 440_000_000 } },
    ['warning code/size'],
  ],
  [
    'kartoza/docker-postgis#106: every script has Windows line endings',
    { files: { 'setup.sh': '#!/usr/bin/env bash\r\nset -e\r\n' } },
    ['warning code/line-endings'],
  ],
  ...[
    ['\uFEFFset -e\nfalse\n', 'error'],
    ['\uFEFF#!/usr/bin/env bash\nset -e\n', ''],
    ['\uFEFF\n# a comment\nset -e\n', ''],
    ['\uFEFFset -e\r\n', 'error'],
  ].map(([text = '', level]): [string, Given, string[]] => [
    `PIsberg/vibetags#437: a byte order mark before ${JSON.stringify(text.slice(1))}`,
    {
      files: { 'train.sh': text },
      code: { entryPoint: 'train.sh' },
      distribution: { library: 'custom', launcher: 'script' },
    },
    level ? Array(text.includes('\r') ? 2 : 1).fill('error code/line-endings') : [],
  ]),
  [
    'a sibling of PIsberg/vibetags#437: a mark in a script that the entry point calls',
    { files: { 'setup.sh': '\uFEFFexport A=1\n' } },
    ['warning code/line-endings'],
  ],
  ...[
    ['torch==2.4.1', 1],
    ['torch == 2.13.0  # as in the image', 0],
    ['torch', 0],
    ['torch>=2.6,<2.14', 0],
    ['torch[opt-einsum]~=2.4', 0],
    ['Torch<2.10; python_version > "3.8"', 1],
    ['torchvision==0.19.1', 1],
    ['torchvision==0.28', 0],
    ['torch @ https://download.pytorch.org/whl/cu128/torch-2.13.0.whl', 1],
    ['nvidia-nccl-cu12==2.21.5', 1],
    ['torchmetrics==1.2', 0],
    ['transformers \\\n  ==4.57', 0],
  ].map(([line, warnings]): [string, Given, string[]] => [
    `bananaml/serverless-template#13, GoogleCloudPlatform/scientific-computing-examples#157: ${line}`,
    { files: { 'requirements.txt': `tqdm\n${line}\n` }, code: { requirements: 'requirements.txt' } },
    warnings ? ['warning code/image-packages'] : [],
  ]),
  ...[
    ['-e git+https://github.com/huggingface/diffusers.git@main#egg=diffusers', 1],
    ['diffusers @ git+https://github.com/huggingface/diffusers.git', 1],
    ['--extra-index-url=https://download.pytorch.org/whl/cu128', 1],
    ['diffusers==0.30', 0],
  ].map(([line, errors]): [string, Given, string[]] => [
    `aws/sagemaker-python-sdk#4474, nvidia-cosmos/cosmos-transfer1#153: ${line} in a network with an index of its own`,
    {
      files: { 'requirements.txt': `${line}\n` },
      code: { requirements: 'requirements.txt' },
      environment: { network: { mode: 'vpc-locked', packages: 'codeartifact' } },
    },
    errors ? ['error code/package-places'] : [],
  ]),
  ...[
    ['anyio @ file:///home/conda/feedstock_root/build_artifacts/anyio_1708355285029/work', 'warning'],
    ['/home/me/own.whl', 'warning'],
    ['./wheels/own-1.0-py3-none-any.whl', ''],
    ['wheels/own-1.0-py3-none-any.whl', ''],
    ['file:wheels/own-1.0-py3-none-any.whl', ''],
    ['./own-1.0-py3-none-any.whl', 'error'],
    ['../shared', 'error'],
    ['-e ./shared[extra]', 'error'],
    ['-e .', 'error'],
    ['-c constraints.txt', 'error'],
    ['--find-links wheels', ''],
    ['/opt/ml/input/data/wheels/own.whl', ''],
    ['own @ https://example.org/own.whl', ''],
  ].map(([line = '', level]): [string, Given, string[]] => [
    `compbioNJU/scPlantLLM#2, serverless/serverless-python-requirements#500: ${line}`,
    {
      files: { 'requirements.txt': `tqdm\n${line}\n`, 'wheels/own-1.0-py3-none-any.whl': 1 },
      code: { requirements: 'requirements.txt' },
    },
    level ? [`${level} code/package-files`] : [],
  ]),
  [
    'pypa/pip#3772: a path that is relative to the requirements file in a folder',
    {
      files: { 'reqs/all.txt': '-r base.txt\n./wheels/own.whl\n', 'reqs/base.txt': '', 'reqs/wheels/own.whl': 1 },
      code: { requirements: 'reqs/all.txt' },
    },
    ['error code/package-files'],
  ],
  ...(
    [
      ['vpc-locked', {}, { model_name: 'distilbert-base-uncased' }, 1],
      ['vpc-locked', {}, { model_name_or_path: 'meta-llama/Llama-3.1-8B', dataset_name: 'imdb' }, 2],
      ['vpc-locked', {}, { model_name: '/opt/ml/input/data/model', 'model-type': 'bert' }, 0],
      ['vpc-locked', { HF_ENDPOINT: 'https://hub.example.org' }, { model_name: 'bert-base-uncased' }, 0],
      ['vpc-nat', {}, { model_name: 'distilbert-base-uncased' }, 0],
    ] as const
  ).map(([mode, environmentVariables, words, warnings]): [string, Given, string[]] => [
    `philschmid/huggingface-sagemaker-workshop-series#15: ${JSON.stringify(words)} in ${mode}`,
    {
      code: { arguments: words },
      also: { environmentVariables },
      environment: { network: { mode, packages: 'none' } },
    },
    Array(warnings).fill('warning code/hub-access'),
  ]),
  ...(
    [
      ['managed', { output_dir: '/opt/ml/model' }, 1],
      ['managed', { output_dir: './out', num_train_epochs: 3 }, 1],
      ['managed', { output_dir: '/opt/ml/checkpoints/a' }, 0],
      ['managed', { save: '/workspace/checkpoints' }, 1],
      ['managed', { save: 'best' }, 0],
      ['none', { 'trainer.default_root_dir': '/opt/ml/checkpoints' }, 1],
      ['none', { output_dir: '/opt/ml/model' }, 0],
    ] as const
  ).map(([mode, words, warnings]): [string, Given, string[]] => [
    `huggingface/notebooks#138, NVIDIA-NeMo/Megatron-Bridge#2780: ${JSON.stringify(words)} with checkpoints ${mode}`,
    { code: { arguments: words }, also: { checkpoints: { mode } } },
    warnings ? ['warning checkpoints/lost-output'] : [],
  ]),
  [
    'huggingface/transformers#9224: false for options that are true by default',
    { code: { arguments: { remove_unused_columns: false, 'save-safetensors': false, fp16: false, log: 'False' } } },
    ['warning code/false-arguments', 'warning code/false-arguments'],
  ],
  [
    'spinalcordtoolbox/spinalcordtoolbox#4208: a path that begins with ~',
    { code: { arguments: { cache: '~/cache', name: '~a' } }, also: { environmentVariables: { CACHE: '~' } } },
    ['warning code/unexpanded-variables', 'warning code/unexpanded-variables'],
  ],
  ...(
    [
      [{ on: 'False' }, {}, 1],
      [{ on: false, off: false }, {}, 1],
      [{ off: 'no', on: true, comment: 'False', parsed: 'False' }, {}, 1],
      [{}, { on: 'False', off: true, parsed: 'False' }, 1],
    ] as const
  ).map(([words, hyperparameters, warnings]): [string, Given, string[]] => [
    `aws/sagemaker-python-sdk#4247: ${JSON.stringify([words, hyperparameters])} for a parser with type=bool`,
    {
      files: { 'train.py': BOOLS },
      code: { arguments: words },
      also: { hyperparameters },
      distribution: Object.keys(hyperparameters).length > 0 ? TOOLKIT : { library: 'ddp' },
    },
    Array(warnings).fill('warning code/false-arguments'),
  ]),
  ...(
    [
      ['meta-llama/Llama-2-13b-hf', {}, {}, 1],
      ['google/gemma-3-4b-it', {}, {}, 1],
      ['google/flan-t5-xl', {}, {}, 0],
      ['meta-llama/Llama-2-13b-hf', { secrets: { HF_TOKEN: 'research/hub' } }, {}, 0],
      ['meta-llama/Llama-2-13b-hf', {}, { hf_token: 'x' }, 0],
      ['meta-llama/Llama-2-13b-hf', { environmentVariables: { HF_ENDPOINT: 'https://hub.example.org' } }, {}, 0],
    ] as const
  ).map(([model_id, also, more, warnings]): [string, Given, string[]] => [
    `philschmid/sagemaker-huggingface-llama-2-samples#6: ${model_id} with ${JSON.stringify([also, more])}`,
    { code: { arguments: { model_id, ...more } }, also },
    Array(warnings).fill('warning code/hub-access'),
  ]),
  [
    'huggingface/notebooks#149: the folder of managed checkpoints in a job without them',
    { code: { arguments: { output_dir: '/opt/ml/checkpoints' } }, also: { checkpoints: { mode: 'none' } } },
    ['warning checkpoints/lost-output'],
  ],
  [
    'huggingface/diffusers#5519: a model of a hub for hosts without a way to it',
    {
      code: { arguments: { pretrained_model_name_or_path: 'CompVis/stable-diffusion-v1-4' } },
      environment: { network: { mode: 'vpc-locked', packages: 'none' } },
    },
    ['warning code/hub-access'],
  ],
  ...(
    [
      ['args = TrainingArguments(output_dir="/tmp/out", num_train_epochs=3)', {}, 1],
      ['args = TrainingArguments(\n    num_train_epochs=3,\n    output_dir="out",\n)', {}, 1],
      ['args = TrainingArguments(output_dir="/opt/ml/checkpoints/a")', {}, 0],
      ['args = TrainingArguments(output_dir="out", save_strategy="no")', {}, 0],
      ['args = TrainingArguments(output_dir=given.output_dir)', {}, 0],
      ['args = TrainingArguments(output_dir=f"{root}/out")', {}, 0],
      ['args = SFTConfig(logging_dir=os.path.join(a, b), output_dir="out")', {}, 1],
      ['download("gpt2", output_dir="out")', {}, 0],
      ['# args = TrainingArguments(output_dir="out")', {}, 0],
      ['args = TrainingArguments(output_dir="out")', { output_dir: '/opt/ml/checkpoints' }, 0],
    ] as const
  ).map(([script, words, warnings]): [string, Given, string[]] => [
    `philschmid/sagemaker-huggingface-llama-2-samples#10: managed checkpoints, and ${script}`,
    { files: { 'train.py': script }, code: { arguments: words }, also: { checkpoints: { mode: 'managed' } } },
    warnings ? ['warning checkpoints/lost-output'] : [],
  ]),
  ...[
    ['YerbaPage/DetectCodeGPT#1', '-e /home/me/pretrain', 'warning'],
    ['sgl-project/sglang#3521', '-e python[all]', 'error'],
    ['sgl-project/sglang#3521', '-e "wheels[all]"', ''],
    ['cumulo-autumn/StreamDiffusion#92', 'pywin32==306', 'error'],
    ['cumulo-autumn/StreamDiffusion#92', 'pywin32==306; sys_platform == "win32"', ''],
    ['serverless/serverless-python-requirements#272', 'git+ssh://git@github.com/foo/bar', 'warning'],
    ['serverless/serverless-python-requirements#272', 'bar @ git+ssh://git@github.com/foo/bar', 'warning'],
    ['serverless/serverless-python-requirements#272', 'bar @ git+https://github.com/foo/bar', ''],
  ].map(([source, line, level]): [string, Given, string[]] => [
    `${source}: ${line}`,
    {
      files: { 'requirements.txt': `tqdm\n${line}\n`, 'wheels/setup.py': '' },
      code: { requirements: 'requirements.txt' },
    },
    level ? [`${level} code/package-files`] : [],
  ]),
  [
    'huggingface/huggingface_hub#2942: paths that huggingface_hub expands',
    { also: { environmentVariables: { HF_HOME: '~/hub', HF_TOKEN_PATH: '$HOME/token', HF_LEROBOT_HOME: '~/a' } } },
    ['warning code/unexpanded-variables'],
  ],
  [
    'huggingface/huggingface_hub#4292: a folder of a cache that begins with ~',
    { code: { arguments: { cache_dir: '~/hub' } } },
    ['warning code/unexpanded-variables'],
  ],
  ...(['utf16le', 'utf16be'] as const).map((encoding): [string, Given, string[]] => {
    const text = Buffer.from('\uFEFFtorch==2.4.1\r\n./own.whl\r\n', 'utf16le');
    return [
      `n-rook/thscoreboard#24: requirements in ${encoding}, which pip reads`,
      {
        files: { 'requirements.txt': encoding === 'utf16le' ? text : text.swap16() },
        code: { requirements: 'requirements.txt' },
      },
      ['warning code/image-packages', 'error code/package-files'],
    ];
  }),
  [
    'stanfordnlp/dspy#1013: a package that the requirements lack, and perhaps the image',
    {
      files: { 'train.py': 'import evaluate', 'requirements.txt': 'tqdm' },
      code: { requirements: 'requirements.txt' },
    },
    [],
  ],
  ['hiyouga/LlamaFactory#4014: a learning rate without a point', { code: { arguments: { learning_rate: 2e-5 } } }, []],
  [
    'aws/sagemaker-training-toolkit#117: a list as a hyperparameter',
    { also: { hyperparameters: { list_param: ['foo', 'bar'] } }, distribution: TOOLKIT },
    ['warning code/argument-form'],
  ],
  [
    'aws/sagemaker-training-toolkit#128: a hyperparameter with a space',
    { also: { hyperparameters: { key: 'a b' } }, distribution: TOOLKIT },
    ['warning code/shell-characters'],
  ],
  [
    'aws/sagemaker-python-sdk#1142: requirements.txt and no way to an index',
    {
      files: { 'requirements.txt': 'tqdm' },
      distribution: TOOLKIT,
      environment: { network: { mode: 'vpc-locked', packages: 'none' } },
    },
    ['error code/requirements'],
  ],
  [
    'awslabs/graphstorm#1107: a pattern in the place of a prefix',
    { also: { data: [{ channel: 'train', s3: 's3://{dataBucket}/edges/type*.parquet' }] } },
    ['warning data/whole-folder'],
  ],
  [
    'modelscope/ms-swift#2485: the address of the first host is that of each host itself',
    { also: { environmentVariables: { MASTER_ADDR: '127.0.0.1', OMP_NUM_THREADS: '4' } } },
    ['warning code/replaced-variables'],
  ],
  ...[
    ['deepspeed --num_gpus 4 train.py "$@"', 1],
    ['exec python3 -m deepspeed.launcher.runner --hostfile hosts train.py', 1],
    ['deepspeed --no_ssh --node_rank $RANK --master_addr algo-1 train.py', 0],
    ['accelerate launch --multi_gpu \\\n  --num_processes 8 train.py', 1],
    ['accelerate launch --num_machines 2 train.py', 0],
    ['NCCL_DEBUG=INFO torchrun --nproc_per_node=$SM_NUM_GPUS train.py', 1],
    ['torchrun $DISTRIBUTED_ARGS train.py', 0],
    ['torchrun --nnodes 2 --node-rank $RANK train.py', 0],
    ['# torchrun train.py\npython3 train.py', 0],
  ].map(([command, warnings]): [string, Given, string[]] => [
    `modelscope/ms-swift#3695: each host trains alone: ${command}`,
    {
      files: { 'train.sh': `set -e\n${command}\n` },
      code: { entryPoint: 'train.sh' },
      distribution: { library: 'custom', launcher: 'script' },
    },
    warnings ? ['warning code/one-host-launcher'] : [],
  ]),
  [
    'aws/sagemaker-python-sdk#471: the entry point is a file in S3',
    { code: { entryPoint: 's3://a-bucket/scripts/train.py' } },
    ['error code/folder'],
  ],
  [
    'aws/sagemaker-python-sdk#835: the code is an archive on this machine',
    { code: { source: './code.tar.gz' } },
    ['error code/folder'],
  ],
  [
    'huggingface/accelerate#26: a flag without a value under the driver',
    { code: { arguments: { do_train: true, output_dir: '/opt/ml/model' } } },
    [],
  ],
  [
    'aws/sagemaker-python-sdk#3518: an entry point in a folder',
    { files: { 'code/script.py': '' }, code: { entryPoint: 'code/script.py' } },
    [],
  ],
])('%s', (_, given, said) => {
  expect(tried(given).said).toEqual(said);
});

/** Scripts, words of the run file, and other files. */
const script = (text: string, words: object, files: Folder = {}): Given => ({
  files: { 'train.py': text, ...files },
  code: { arguments: words },
});

const PARSER = 'import argparse\nparser = argparse.ArgumentParser()\n';
const SEARCH = `${PARSER}parser.add_argument(\n    "--search",\n    type=bool,\n    default=True,\n    help="both (or",\n)\n`;
const FALSE = 'warning code/false-arguments';

test.each<[source: string, given: Given, said: string[]]>([
  ...(
    [
      [
        'LID-DS/LID-DS#424',
        `${PARSER}parser.add_argument('-t', dest='aware', action='store', type=bool, required=True)`,
        { t: 'False' },
        1,
      ],
      ['bw2/ConfigArgParse#91', "p = configargparse.ArgParser()\np.add('--key', type=bool)", { key: 'False' }, 1],
      [
        'neonbjb/tortoise-tts#541',
        `${PARSER}parser.add_argument('--half', type=bool, default=True)`,
        { half: 'off' },
        1,
      ],
      ['neonbjb/tortoise-tts#541', `${PARSER}parser.add_argument('--half', type=bool, default=True)`, { half: '' }, 0],
      [
        'jingyaogong/minimind#264',
        `${PARSER}parser.add_argument('--use_moe', default=False, type=bool)`,
        { use_moe: 0 },
        1,
      ],
      [
        'Oreobird/Face-Occlusion-Detect#9',
        `${PARSER}parser.add_argument('--fine_tune', type=bool, default=False)`,
        { fine_tune: 'False', train: 'True' },
        1,
      ],
      [
        'lebrice/SimpleParsing#68',
        '@dataclass\nclass Args:\n    enable_water: bool = True  # Do you want water?\n    air: bool = False\nparser.add_arguments(Args, dest="args")',
        { 'enable-water': false, air: false },
        1,
      ],
      [
        'a field',
        'class A:\n    log: Optional[bool] = field(\n        default=True, metadata={"help": "x = y"}\n    )\nHfArgumentParser(A)',
        { log: false },
        1,
      ],
      ['a class that no parser reads', '@dataclass\nclass Args:\n    water: bool = True', { water: false }, 0],
      ['true by default', `${PARSER}parser.add_argument("--mix", type=str2bool, default=True)`, { mix: false }, 1],
      ['true by default', `${PARSER}parser.add_argument("--mix", type=str2bool, default=True)`, { mix: 'False' }, 0],
      [
        'a negation',
        `${PARSER}parser.add_argument("--mix", action=argparse.BooleanOptionalAction, default=True)`,
        { mix: false },
        1,
      ],
      ['another library', '@click.option("--mix", type=bool, default=True)\ndef main(mix): ...', { mix: 'False' }, 0],
      [
        'a text',
        `"""p.add_argument("--mix", type=bool)"""\nparser.add_argument("--mix", help=", type=bool,")`,
        { mix: 'no' },
        0,
      ],
    ] as const
  ).map(([source, text, words, warnings]): [string, Given, string[]] => [
    `${source}: ${JSON.stringify(words)} for ${text}`,
    script(text, words),
    Array(warnings).fill(FALSE),
  ]),
  [
    'phdymz/ProteinMAE#2: the options are in a module beside the script',
    script('from arguments import parser\nargs = parser.parse_args()', { search: 'False' }, { 'arguments.py': SEARCH }),
    [FALSE],
  ],
  [
    'ACEsuit/mace#429: the options are in a module of a package',
    script('from cli import (  # one (\n    arg_parser,\n)', { search: 'False' }, { 'cli/arg_parser.py': SEARCH }),
    [FALSE],
  ],
  [
    'opendatahub-io/vllm-tgis-adapter#96: a function of a package adds the options',
    script(
      'import serving.args as own\nown.add_args(argparse.ArgumentParser())',
      { search: 'false' },
      { 'serving/args.py': 'from . import more', 'serving/more.py': SEARCH },
    ),
    [FALSE],
  ],
  [
    'an option of a program that the script does not import',
    script('import evaluation', { search: 'False' }, { 'infer.py': SEARCH, 'evaluation/run.py': SEARCH }),
    [],
  ],
  ...(
    [
      ['REAL = bool(os.environ.get("REAL", False))', 'False', 1],
      ['REAL = bool(os.getenv("REAL"))', '', 0],
      ['REAL = os.environ.get("REAL") == "True"', 'False', 0],
    ] as const
  ).map(([text, REAL, warnings]): [string, Given, string[]] => [
    `facebookresearch/generic-neuromotor-interface#49: "${REAL}" for ${text}`,
    { ...script(text, {}), also: { environmentVariables: { REAL } } },
    Array(warnings).fill(FALSE),
  ]),
  ...(
    [
      ['owncloud/smashbox#30', '-e git+git@github.com:a/pyocclient.git@master#egg=pyocclient', 'warning'],
      ['heroku/heroku-buildpack-python#346', '-e git+ssh://git@github.com/a/own.git@feature/b#egg=own', 'warning'],
      ['readthedocs/readthedocs.org#1245', 'git+https://git@github.com/a/bamboo_boy#egg=bamboo_boy', ''],
      ['CDCgov/DynODE#28', 'pywinpty==2.0.12', 'error'],
      ['tomups/watercooler-manager#10', 'winshell==0.6\npywin32==310\nbleak-winrt==1.2.0', 'error'],
      ['mateogon/pdf-narrator#15', 'win32_setctime==1.2.0', ''],
      ['loscrossos/core_bagel#1', 'https://example.org/triton-3.3.0-cp312-cp312-win_amd64.whl', 'error'],
      [
        'loscrossos/core_bagel#1',
        'own @ https://example.org/own-1-cp312-cp312-macosx_11_0_arm64.whl#sha256=a',
        'error',
      ],
      ['loscrossos/core_bagel#1', 'https://example.org/a-1-cp312-cp312-win_amd64.whl ; sys_platform == "win32"', ''],
      ['pypa/pip#2966', '-e wheels\\module', 'error'],
      ['pypa/pip#10121', '-r D:\\absolute\\path\\other.txt', 'error'],
      ['hyeonheebee/memory-cat#12', '# 버전 범위 (모두)\ntqdm>=4  # 진행 표시줄', ''],
      ['jazzband/pip-tools#2063', '--extra-index-url https://${USER}:${KEY}@pypi.example.org/simple', ''],
      ['jazzband/pip-tools#2063', '--find-links ${WHEELS}', ''],
      ['Wan-Video/Wan2.2#344, perhaps in the image', 'torch>=2.4.0\nflash_attn', ''],
      ['mozilla/addons-server#2300, which pip refuses', `tqdm==4.66.1 --hash=sha256:${'a'.repeat(64)}\nsimplejson`, ''],
    ] as const
  ).map(([source, lines, level]): [string, Given, string[]] => [
    `${source}: ${lines}`,
    {
      files: { 'requirements.txt': `${lines}\n`, 'wheels/module/setup.py': '' },
      code: { requirements: 'requirements.txt' },
    },
    level ? [`${level} code/package-files`] : [],
  ]),
  [
    'harlanhong/ACTalker#10: a version of PyTorch for another CUDA',
    { files: { 'requirements.txt': 'torch==2.0.1+cu118' }, code: { requirements: 'requirements.txt' } },
    ['warning code/image-packages'],
  ],
  ...(
    [
      ['data-prep-kit/data-prep-kit#1504', 'bigcode/starcoder', 1],
      ['data-prep-kit/data-prep-kit#1504', 'bigcode/starcoder2-3b', 0],
      ['ml-explore/mlx-examples#759', 'mistralai/Mistral-7B-Instruct-v0.2', 1],
      ['vladmandic/sdnext#4043', 'black-forest-labs/FLUX.1-dev', 1],
    ] as const
  ).map(([source, name, warnings]): [string, Given, string[]] => [
    `${source}: ${name}`,
    { code: { arguments: { model_name_or_path: name } } },
    Array(warnings).fill('warning code/hub-access'),
  ]),
  ...(
    [
      ['AutoTokenizer.from_pretrained("mistralai/Mistral-7B-v0.1", use_fast=True)', {}, {}, 1],
      ['AutoTokenizer.from_pretrained("gpt2")', {}, {}, 0],
      ['AutoTokenizer.from_pretrained(args.model or "meta-llama/Llama-2-7b-hf")', {}, {}, 0],
      ['AutoTokenizer.from_pretrained("meta-llama/Llama-2-7b-hf")', { model_id: 'gpt2' }, {}, 0],
      ['AutoTokenizer.from_pretrained("meta-llama/Llama-2-7b-hf")', {}, { secrets: { HF_TOKEN: 'research/hub' } }, 0],
    ] as const
  ).map(([text, words, also, warnings]): [string, Given, string[]] => [
    `PrimeIntellect-ai/prime-diloco#108: ${text} with ${JSON.stringify([words, also])}`,
    { ...script(text, words), also },
    Array(warnings).fill('warning code/hub-access'),
  ]),
  ...(
    [
      [
        'Oneflow-Inc/DLPerf#113',
        'python3 -m torch.distributed.launch --nnodes $n --node_rank=0 --master_addr=$m a.py',
        1,
      ],
      ['LTH14/rcg#39', 'python -m torch.distributed.launch --nnodes=2 --node_rank=0 \\\na.py --output_dir ${OUT}', 1],
      ['DeepWave-KAUST/sweep#68', 'torchrun --standalone --nproc-per-node=4 a.py', 1],
      ['DeepWave-KAUST/sweep#68', 'torchrun --nnodes=1 --node_rank=0 --nproc-per-node=$GPUS a.py', 1],
      ['DeepWave-KAUST/sweep#68', 'torchrun --nnodes=16 --rdzv-endpoint=algo-1:29500 --node-rank=0 a.py', 0],
      ['a rank for each host', 'if $first; then torchrun --node_rank 0 a.py; else\ntorchrun --node_rank 1 a.py; fi', 0],
      ['a rank for each host', 'accelerate launch --num_machines 2 --machine_rank $RANK a.py', 0],
    ] as const
  ).map(([source, command, warnings]): [string, Given, string[]] => [
    `${source}: ${command}`,
    {
      files: { 'train.sh': `set -e\n${command}\n` },
      code: { entryPoint: 'train.sh' },
      distribution: { library: 'custom', launcher: 'script' },
    },
    Array(warnings).fill('warning code/one-host-launcher'),
  ]),
  [
    'OpenBMB/MiniCPM-o-Demo#19: an installer with Windows line endings',
    { files: { 'install.sh': '#!/bin/bash\r\nset -e\r\n' } },
    ['warning code/line-endings'],
  ],
  ...(
    [
      ['train.sh', '#!/bin/bash\r\npython a.py\r\n', 'utf16le'],
      ['train.sh', '# a comment\n', 'utf16be'],
      ['train.py', 'import torch\r\n', 'utf16le'],
    ] as const
  ).map(([entryPoint, text, encoding]): [string, Given, string[]] => {
    const bytes = Buffer.from(`\uFEFF${text}`, 'utf16le');
    return [
      `PowerShell/PowerShell#3959: ${entryPoint} in ${encoding}`,
      {
        files: { [entryPoint]: encoding === 'utf16le' ? bytes : bytes.swap16() },
        code: { entryPoint },
        distribution: entryPoint.endsWith('.sh') ? { library: 'custom', launcher: 'script' } : { library: 'ddp' },
      },
      ['error code/line-endings'],
    ];
  }),
  ...(
    [
      ["args = Seq2SeqTrainingArguments(\n  output_dir='./checkpoint/',\n  save_strategy='epoch'\n)", 1],
      ['args = TrainingArguments("out", num_train_epochs=3)', 1],
      ['args = TrainingArguments("/opt/ml/checkpoints")', 0],
      ['config = LoraConfig("out")', 0],
      ['trainer = lightning.Trainer(max_epochs=3)', 0],
      ['args = SFTConfig(report_to=f"a)", run=name(a(b("c"))), output_dir="out")  # (', 1],
    ] as const
  ).map(([text, warnings]): [string, Given, string[]] => [
    `determined-ai/determined#8391: managed checkpoints, and ${text}`,
    { ...script(text, {}), also: { checkpoints: { mode: 'managed' } } },
    Array(warnings).fill('warning checkpoints/lost-output'),
  ]),
])('%s', (_, given, said) => {
  expect(tried(given).said).toEqual(said);
});

/** A script for several hosts, and the findings about its launcher. */
const launched = (source: string, text: string, said: string[]): [string, Given, string[]] => [
  source,
  {
    files: { 'train.sh': text },
    code: { entryPoint: 'train.sh' },
    distribution: { library: 'custom', launcher: 'script' },
  },
  said,
];

/** Requirements, and what is said of them. */
const required = (source: string, lines: string, said: string[]): [string, Given, string[]] => [
  source,
  { files: { 'requirements.txt': `${lines}\n` }, code: { requirements: 'requirements.txt' } },
  said,
];

/** Tried after the sixth search. */
test.each<[source: string, given: Given, said: string[]]>([
  [
    'elliottd/GroundedTranslation#22: a flag that is true by default',
    script(`${PARSER}parser.add_argument("--perplexity", action="store_true", default=True)`, { perplexity: false }),
    [FALSE],
  ],
  [
    'a sibling of elliottd/GroundedTranslation#22: a flag that makes another option false',
    script(`${PARSER}parser.add_argument("--no-cuda", action="store_false", default=True, dest="cuda")`, {
      'no-cuda': false,
    }),
    [],
  ],
  [
    'a sibling of elliottd/GroundedTranslation#22: a text',
    script(`${PARSER}parser.add_argument("--level", default="0")\nparser.add_argument("--mode")`, {
      level: 0,
      mode: 'off',
    }),
    [],
  ],
  [
    'huggingface/diffusers#5557: a flag of the script with the name of an option of a library',
    script(`${PARSER}parser.add_argument("--gradient_checkpointing", action="store_true", help="less memory")`, {
      gradient_checkpointing: false,
    }),
    [],
  ],
  [
    'mauvilsa/jsonargparse#355: type=bool of a library that reads the text',
    script(
      'from jsonargparse import ArgumentParser\nparser = ArgumentParser()\nparser.add_argument("--flag", type=bool)',
      {
        flag: 'false',
      },
    ),
    [],
  ],
  [
    'huggingface/transformers#13865: the negation that transformers adds',
    script('parser = HfArgumentParser(TrainingArguments)', { no_dataloader_pin_memory: true }),
    [],
  ],
  [
    'huggingface/notebooks#52, as its script is published: it ignores what it does not know',
    script(
      `${PARSER}parser.add_argument("--train-batch-size", type=int, default=32)\nargs, _ = parser.parse_known_args()`,
      { train_batch_size: 16, epochs: 1 },
    ),
    ['warning code/refused-arguments'],
  ],
  [
    'aws/sagemaker-python-sdk#1720: an argument that a script reads, and nobody passes',
    script(`${PARSER}parser.add_argument("--model_dir", default="")\nargs = parser.parse_args()`, {}),
    [],
  ],
  ...(
    [
      ['huggingface/notebooks#52', 'parser.add_argument("--train-batch-size", type=int)', { train_batch_size: 32 }, 1],
      ['huggingface/transformers#10957', 'parser.add_argument("--num_train_epochs")', { epochs: 1 }, 1],
      [
        'huggingface/transformers#9823',
        'parser.add_argument("--do_train", action="store_true")',
        { do_train: 'True' },
        1,
      ],
      [
        'YuyangSunshine/ABR_IOD#7',
        'parser.add_argument("--feat", type=str, choices=["no", "std", "ard"])',
        { feat: 'afd' },
        1,
      ],
      ['tancik/StegaStamp#27', 'parser.add_argument("exp_name", type=str)', {}, 1],
      ['yulu0724/SDC-IL#20', 'parser.add_argument("-data", required=True)', {}, 1],
      ['yulu0724/SDC-IL#20', 'parser.add_argument("-data", required=True)', { '-data': 'cub' }, 0],
      ['fpcsong/emotionflow#3', 'parser.add_argument("-epochs", "--epochs", type=int)', { epochs: '[20, 5]' }, 1],
      [
        'derrian-distro/LoRA_Easy_Training_Scripts#19',
        'parser.add_argument("--lr_a")\nparser.add_argument("--lr_b")',
        { lr: 1 },
        1,
      ],
      [
        'huggingface/notebooks#34',
        'parser.add_argument("--do_eval", dest="do_eval", action="store_true")',
        { do_eval: true },
        0,
      ],
      ['computational-cell-analytics/synapse-net#33', 'parser.add_argument("-k", "--key", required=True)', {}, 1],
      [
        'computational-cell-analytics/synapse-net#33',
        'parser.add_argument("-k", "--key", required=True)',
        { key: 'a' },
        0,
      ],
    ] as const
  ).map(([source, text, words, warnings]): [string, Given, string[]] => [
    `${source}: ${JSON.stringify(words)} for ${text}`,
    script(`${PARSER}${text}\nargs = parser.parse_args()`, words),
    Array(warnings).fill('warning code/refused-arguments'),
  ]),
  [
    'aws/sagemaker-python-sdk#5023: Hydra reads trainer=gpu, and the run passes --trainer gpu',
    script('import hydra\n\n@hydra.main(version_base=None, config_name=None)\ndef main(cfg): ...', { trainer: 'gpu' }),
    ['warning code/refused-arguments'],
  ],
  ...(
    [
      ['pytorch/pytorch#76069: each host is the first', 'os.environ["MASTER_ADDR"] = "localhost"', 1],
      [
        'pytorch/pytorch#76069: unless the launcher has named it',
        'if "MASTER_ADDR" not in os.environ:\n    os.environ["MASTER_ADDR"] = "localhost"',
        0,
      ],
      [
        'awslabs/slapo#64',
        `${PARSER}parser.add_argument("--local_rank", type=int, default=0)\nargs = parser.parse_args()\ntorch.cuda.set_device(args.local_rank)`,
        1,
      ],
      [
        'awslabs/slapo#64: or from the variable',
        'if "LOCAL_RANK" in os.environ:\n    args.local_rank = 1\ntorch.cuda.set_device(args.local_rank)',
        0,
      ],
      ['pytorch/pytorch#15638', 'dist.init_process_group("nccl", init_method="tcp://127.0.0.1:23456")', 1],
      [
        'helboukkouri/character-bert-pretraining#4: each rank spawns ranks',
        'def main(rank, n):\n    dist.init_process_group("nccl", rank=rank, world_size=n)\nmp.spawn(main, args=(8,), nprocs=8)',
        1,
      ],
    ] as const
  ).map(([source, text, warnings]): [string, Given, string[]] => [
    source,
    script(text, {}),
    Array(warnings).fill('warning code/own-ranks'),
  ]),
  launched(
    'rwth-i6/i6_core#462: --standalone for one host, and other options for several',
    'if [ "$HOSTS" = 1 ]; then\n  torchrun --standalone --nproc_per_node=4 a.py\nelse\n  torchrun --nnodes=$HOSTS --node_rank=$RANK --master_addr=algo-1 a.py\nfi\n',
    [],
  ),
  launched(
    'hpcaitech/Open-Sora#869: the rank of the host in a variable',
    'torchrun --nnodes 2 --nproc_per_node 4 --master_addr $MASTER_ADDR --node-rank $NODE_RANK a.py configs/demo.py\n',
    [],
  ),
  ...(
    [
      ['-e .', {}, 1],
      ['-e .', { 'pyproject.toml': '' }, 0],
      ['./src', { 'src/data.py': '' }, 1],
      ['./src', { 'src/setup.py': '' }, 0],
      ['own @ file:src', { 'src/data.py': '' }, 1],
      ['--find-links src', { 'src/data.py': '' }, 0],
    ] as const
  ).map(([line, files, errors]): [string, Given, string[]] => [
    `aws/sagemaker-python-sdk#3721: ${line} with ${Object.keys(files)}`,
    { files: { 'requirements.txt': `${line}\n`, ...files }, code: { requirements: 'requirements.txt' } },
    Array(errors).fill('error code/package-files'),
  ]),
  ...(
    [
      ['mudler/LocalAI#9557', 'vllm==0.19.1', 1],
      ['a sibling of mudler/LocalAI#9557', 'sglang[all]', 1],
      ['a sibling of mudler/LocalAI#9557', 'vllm==0.19.1 ; sys_platform == "darwin"', 0],
      [
        'philschmid/llm-sagemaker-sample#13',
        'transformers==4.34.0\ndatasets==2.14.0\npeft==0.4.0\naccelerate==0.23.0\nbitsandbytes==0.41.1\nsafetensors>=0.3.3\npackaging\nninja',
        0,
      ],
    ] as const
  ).map(([source, lines, warnings]) => required(source, lines, Array(warnings).fill('warning code/image-packages'))),
  ...(
    [
      ['open-edge-platform/physical-ai-studio#982', 'google/paligemma-3b-pt-224', 1],
      ['vllm-project/semantic-router#817', 'google/embeddinggemma-300m', 1],
      ['a sibling of vllm-project/semantic-router#817', 'google/medgemma-4b-it', 1],
      ['EricLBuehler/mistral.rs#2190', 'google/gemma-4-12B-it', 0],
    ] as const
  ).map(([source, name, warnings]): [string, Given, string[]] => [
    `${source}: ${name}`,
    { code: { arguments: { model_name_or_path: name } } },
    Array(warnings).fill('warning code/hub-access'),
  ]),
  launched(
    'pytorch/pytorch#69197: hosts that meet at an address, without a rank for each',
    'torchrun --nnodes=2 --nproc_per_node=4 --rdzv_backend=c10d --rdzv-id 100 --rdzv_endpoint=algo-1:29500 train.py\n',
    [],
  ),
  [
    'awslabs/awsome-distributed-ai, 3.test_cases/pytorch/picotron: a page that shows where a token goes',
    { files: { 'README.md': `export HF_TOKEN="hf_${'x'.repeat(34)}"\n` } },
    [],
  ],
  ...(['search-1', 'search-1/', 'search.v1'] as const).map((name): [string, Given, string[]] => [
    `syne-tune/syne-tune#363: checkpoints in ${name}, beside those in search-10`,
    { also: { checkpoints: { mode: 'managed', s3: `s3://{checkpointBucket}/runs/nlp/${name}` } } },
    name === 'search-1/' ? [] : ['warning data/whole-folder'],
  ]),
  required(
    'SKrisanski/FSCT#15: an option without a space before it',
    'torch==1.9.0+cu111--find-links https://example.org/a',
    ['error code/package-files'],
  ),
  required(
    'apache/texera#4473: other versions for other systems',
    'torch==2.13.0 ; platform_system == "Linux" and platform_machine == "x86_64"\ntorch==2.8.0 ; platform_system != "Linux" or platform_machine != "x86_64"',
    [],
  ),
  [
    'Center-for-AI-Innovation/LLMFlux#75: a token in a variable with another name',
    {
      ...script(
        'login(os.environ["HUGGINGFACE_TOKEN"])\nAutoTokenizer.from_pretrained("meta-llama/Llama-2-7b-hf")',
        {},
      ),
      also: { secrets: { HUGGINGFACE_TOKEN: 'research/hub' } },
    },
    [],
  ],
])('%s', (_, given, said) => {
  expect(tried(given).said).toEqual(said);
});

test('aws/sagemaker-python-sdk#3721: a folder is installed only where it is a project, however it is written', () => {
  const projects = ['setup.py', 'pyproject.toml', 'setup.cfg', 'a/setup.py'];
  const forms = [
    './src',
    'src/',
    './src/',
    'file:./src',
    '-e src',
    '-e ./src[all]',
    '--editable=src',
    'own @ file:src',
  ];
  fc.assert(
    fc.property(fc.constantFrom(...forms), fc.subarray(projects), (line, files) => {
      const folder = Object.fromEntries(['data.py', ...files].map((name) => [`src/${name}`, '']));
      const isProject = files.some((name) => name === 'setup.py' || name === 'pyproject.toml');
      const { said } = tried({
        files: { 'requirements.txt': `${line}\n`, ...folder },
        code: { requirements: 'requirements.txt' },
      });
      expect(said).toEqual(isProject ? [] : ['error code/package-files']);
    }),
    { numRuns: draws(30) },
  );
});

test('deeptools/deepTools#1125: a negative number with an exponent, which argparse takes for an option', () => {
  expect(flagArguments({ yMin: -1.06275e-1 })).toEqual(['--yMin', '-0.106275']);
});

test('aws/sagemaker-python-sdk#2689: arguments as a list of words', () => {
  const { schema } = tried({ code: { arguments: ['--do_train', '--output_dir', 'out'] } });
  expect(schema).toEqual([expect.stringMatching(/^code\.arguments: must be a section, got \["--do_train"/)]);
});

test('aws/sagemaker-python-sdk#2337: a link to a library of the repository is packed as its files', () => {
  const { said, packed } = tried({ files: { '/common/lib.py': 'x = 1', common: '->../common' } });
  expect([said, packed.map(({ name }) => name)]).toEqual([[], ['common/lib.py', 'train.py']]);
});

test('skypilot-org/skypilot#8122: a virtual environment is left out, whatever its name', () => {
  const { said, packed } = tried({
    files: { 'env/pyvenv.cfg': '', 'env/lib/a.py': '', 'conda/conda-meta/history': '' },
  });
  expect([said, packed.map(({ name }) => name)]).toEqual([[], ['train.py']]);
});

test('determined-ai/determined#3358: .git is left out', () => {
  expect(tried({ files: { '.git/objects/pack/a.pack': 110_000_000 } }).packed).toHaveLength(1);
});

test('codalab/codalab-worksheets#727: the executable bit is kept', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-public-'));
  writeFileSync(path.join(folder, 'echo'), '');
  chmodSync(path.join(folder, 'echo'), 0o755);
  expect(codeFiles(folder).files).toEqual([{ name: 'echo', bytes: 0, isExecutable: true }]);
});

test('jjjake/internetarchive#284: a name in Latin-1 is named', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-public-'));
  writeFileSync(Buffer.from(`${folder}/JaimeMu\xf1oz.jpg`, 'latin1'), '');
  expect(codeFiles(folder).problems).toEqual([
    { must: 'must contain only names in UTF-8', got: 'JaimeMu\uFFFDoz.jpg', fix: 'rename it' },
  ]);
});

/** Situations that were collected before, with what must be said of each. */
test.each<[source: string, given: Given, said: string[]]>([
  [
    'aws/sagemaker-python-sdk#5897: a start script with Windows line endings',
    {
      files: { 'train.sh': '#!/bin/bash\r\nset -e\r\nfalse\r\n' },
      code: { entryPoint: 'train.sh' },
      distribution: { library: 'custom', launcher: 'script' },
    },
    ['error code/line-endings'],
  ],
  [
    'aws/sagemaker-python-sdk#1857: search paths with references',
    {
      also: {
        environmentVariables: { PATH: '/opt/x/bin:$PATH', LD_LIBRARY_PATH: '/opt/amazon/efa/lib:$LD_LIBRARY_PATH' },
      },
    },
    [
      'warning code/replaced-variables',
      'warning code/replaced-variables',
      'warning code/unexpanded-variables',
      'warning code/unexpanded-variables',
    ],
  ],
  [
    'aws/sagemaker-python-sdk#966: setup.py, and src/train.py under torchrun',
    {
      files: {
        'setup.py': 'from setuptools import setup\nsetup(name="mytrain", packages=["src"])\n',
        'src/train.py': '',
      },
      code: { entryPoint: 'src/train.py' },
      distribution: TOOLKIT,
    },
    ['error code/toolkit-package'],
  ],
  [
    'aws/sagemaker-python-sdk#3612: a prefix that ends within a name',
    { also: { data: [{ channel: 'train', s3: 's3://{dataBucket}/corpus/train', inputMode: 'File' }] } },
    ['warning data/whole-folder'],
  ],
  [
    'aws/sagemaker-python-sdk#4257: FSx for Lustre without its mount name',
    {
      also: {
        data: [{ channel: 'train', fsxLustre: { fileSystemId: '{fsx}', directoryPath: '/fsx/data', access: 'ro' } }],
      },
      environment: {
        fileSystems: {
          fsx: { id: 'fs-0123456789abcdef0', fsxLustre: 'fs-0123456789abcdef0', directoryPath: '/abcdefgh' },
        },
      },
    },
    ['error data/foreign-directory'],
  ],
  [
    'aws/sagemaker-python-sdk#613: a list and false under the toolkit',
    { code: { arguments: { layers: [1, 2], 'use-cache': false } }, distribution: TOOLKIT },
    ['warning code/argument-form'],
  ],
  [
    'aws/sagemaker-python-sdk#613: a list and false under the driver',
    { code: { arguments: { layers: [1, 2], 'use-cache': false } } },
    [],
  ],
  [
    'mantiumai/aws-sagemaker-gptj-deepspeed-blog#5: a link that leads nowhere',
    { files: { broken: '->nowhere' } },
    ['error code/folder'],
  ],
  [
    'aws/sagemaker-python-sdk#442: data in a bucket that the role cannot read',
    { also: { data: [{ channel: 'train', s3: 's3://another-companys-bucket/tokens/' }] } },
    ['error data/foreign-bucket'],
  ],
])('%s', (_, given, said) => {
  expect(tried(given).said).toEqual(said);
});
