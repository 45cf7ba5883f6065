import { type CommandLine, collect } from '../command-line';

const PYTHON = ['--python <file>', 'Python 3.10 or later on this machine, with huggingface_hub', 'python3'] as const;

export function hubVerbs(cli: CommandLine): void {
  cli
    .verb(
      'fetch <source>',
      'copy a model or data set of a hub to the data bucket of the team, once, with its digests',
      'slipway fetch hf:Qwen/Qwen3-8B --environment research/nlp',
      'slipway fetch hf:datasets/HuggingFaceH4/no_robots --environment research/nlp --local',
      'slipway fetch hf:meta-llama/Llama-3.1-8B --environment research/nlp --set secrets.HF_TOKEN=slipway/nlp/hugging-face',
    )
    .option(
      '--to <prefix>',
      'prefix in S3 for the folders of repositories; default: teams/<team>/hub/ of the data bucket',
    )
    .option(
      '--include <pattern>',
      'only files whose path matches (repeatable); default: those that training reads',
      collect,
    )
    .option('--local', 'copy through this machine, for networks without internet access')
    .option('--wait', 'follow the run until it ends')
    .option('--yes', 'skip confirmation prompts')
    .option(...PYTHON)
    .action(cli.action(() => import('./fetch.js'), 'fetchSource'));
  finetuneVerb(cli);
}

function finetuneVerb(cli: CommandLine): void {
  cli
    .verb(
      'finetune',
      'fine-tune a model: write run files for fetch, tokenise and train, show memory, time and cost, and launch them',
      'slipway finetune --model hf:Qwen/Qwen3-8B --data chats.jsonl --method sft --lora 16 --environment research/nlp',
      'slipway finetune --model hf:Qwen/Qwen3-8B --data hf:datasets/HuggingFaceH4/no_robots --method sft --environment research/nlp --dry-run',
    )
    .requiredOption(
      '--model <source>',
      'hf:ORG/NAME[@REVISION], or a prefix in S3 with safetensors, config.json and tokenizer.json',
    )
    .requiredOption('--data <source>', 'file with rows, hf:datasets/ORG/NAME[@REVISION], or a prefix in S3')
    .requiredOption('--method <sft|dpo>', 'supervised fine-tuning, or preference optimisation')
    .option('--lora <rank>', 'train adapters of this rank instead of all weights')
    .option('--qlora', 'adapters on weights in 4 bits, for smaller GPUs; default rank: 16')
    .option('--epochs <n>', 'times that the data is read', '1')
    .option('--instance-type <type>', 'instance type of the training; default: the smallest that fits')
    .option('--out <dir>', 'folder for the run files; default: ./finetune-<model>')
    .option('--dry-run', 'write the files and show the plan, and start nothing')
    .option('--yes', 'skip confirmation prompts')
    .option(...PYTHON)
    .action(cli.action(() => import('./finetune.js'), 'finetune'));
}
