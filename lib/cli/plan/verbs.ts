import type { CommandLine } from '../command-line';

export function planVerbs(cli: CommandLine): void {
  cli
    .verb(
      'validate <file>',
      'check a run file or an environment file against the rules, offline; those about an environment need its descriptor file',
      'slipway validate runs/sagemaker/llama2-13b.yaml\n  slipway validate environments/research.yaml\n  slipway validate runs/data/chat-tokenize.yaml --data chats.jsonl --tokenizer llama3/tokenizer.json',
    )
    .option('--data <file>', 'show what a tokenise run would train in the first rows of a file; needs Python')
    .option('--tokenizer <file>', 'tokenizer.json for --data, on this machine')
    .option('--html <file>', 'write a page that shows the same as --data')
    .option('--python <file>', 'Python interpreter for --data; default: python3')
    .action(cli.action(() => import('./validate.js'), 'validate'));
  planVerb(cli);
}

function planVerb(cli: CommandLine): void {
  cli
    .verb(
      'plan <file>',
      'predict memory, step time, duration and cost of a run',
      'slipway plan runs/builtin/llama3-8b-fsdp.yaml --set compute.instanceCount=8\n  slipway plan runs/builtin/llama3-8b-fsdp.yaml --search --html plan.html',
    )
    .option('--search', 'search faster and cheaper layouts with the library of the run')
    .option('--search-libraries <a,b>', 'also search layouts with these libraries')
    .option('--html <file>', 'write a page that charts memory, step time and scaling, and has the layouts found')
    .option(
      '--by <date>',
      'show options to complete the run by this date: on-demand, spot, training plans; does not purchase anything',
    )
    .action(cli.action(() => import('./plan.js'), 'plan'));
}
