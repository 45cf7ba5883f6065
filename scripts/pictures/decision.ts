import { arrow, box, type Picture, text } from './canvas';

const QUESTIONS: readonly (readonly [question: readonly string[], answer: readonly string[]])[] = [
  [
    ['Do you have a model, but no', 'training script of your own?'],
    ['library: fsdp', 'code.source: builtin'],
  ],
  [
    ['Is your script a Ray Train', 'or verl program?'],
    ['launcher: ray', 'a Ray cluster over all hosts'],
  ],
  [
    ['Does it use SMP, DeepSpeed', 'or Megatron?'],
    ['its own library', 'smp-v2, smp-v1, deepspeed, megatron'],
  ],
  [
    ['Does it use plain FSDP', 'under torchrun?'],
    ['library: fsdp', 'collectives: smddp for AllGather on P4d'],
  ],
];
const ROW = 104;

const step = ([question, answer]: (typeof QUESTIONS)[number], i: number): string => {
  const y = 14 + i * ROW;
  return [
    box({ x: 14, y, width: 284, height: 66 }, 'c1', [`Question ${i + 1}`, ...question]),
    arrow(`298,${y + 33} 372,${y + 33}`, 'c3'),
    text({ x: 334, y: y + 26 }, 'yes', { anchor: 'middle', tint: 'good', bold: true }),
    box({ x: 374, y: y + 4, width: 292, height: 58 }, 'c3', answer),
    arrow(`156,${y + 66} 156,${y + ROW - 2}`),
    text({ x: 166, y: y + 90 }, 'no', { tint: 'muted', bold: true }),
  ].join('\n');
};

export const DECISION: Picture = {
  name: 'which-way',
  title: 'Which way to train',
  description: `${QUESTIONS.map(([question, answer]) => `${question.join(' ')} Yes: ${answer.join(', ')}.`).join(' ')} Otherwise: library: custom, any script under torchrun, MPI or plain.`,
  height: 14 + QUESTIONS.length * ROW + 80,
  parts: [
    ...QUESTIONS.map(step),
    box({ x: 14, y: 14 + QUESTIONS.length * ROW, width: 652, height: 62 }, 'c3', [
      'library: custom',
      'any script: torchrun, MPI or plain; steps of known trainers are read from their output',
    ]),
  ],
};
