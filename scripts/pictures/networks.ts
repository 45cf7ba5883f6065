import { arrow, boundary, box, lines, type Picture, text } from './canvas';

interface Mode {
  name: string;
  /** The frame around the job; empty without a VPC. */
  vpc: string;
  ways: readonly { to: string; about: string; toInternet?: true }[];
  use: readonly string[];
}

const MODES: readonly Mode[] = [
  {
    name: 'vpc-locked (default)',
    vpc: 'New VPC',
    ways: [
      { to: 'S3', about: 'endpoint' },
      { to: 'AWS', about: 'if named' },
    ],
    use: ['No way to the internet. Services that', 'scripts call: network.endpoints.'],
  },
  {
    name: 'vpc-nat',
    vpc: 'New VPC',
    ways: [
      { to: 'S3', about: 'endpoint' },
      { to: 'Internet', about: 'NAT', toInternet: true },
    ],
    use: ['For pip and Hugging Face in jobs.', 'A job can send data anywhere.'],
  },
  {
    name: 'existing',
    vpc: 'Your VPC',
    ways: [
      { to: 'S3', about: 'your route' },
      { to: 'Others', about: 'your rules' },
    ],
    use: ['Checked by preflight and by deploys:', 'routes, group, free addresses.'],
  },
  {
    name: 'none',
    vpc: '',
    ways: [
      { to: 'S3', about: 'public' },
      { to: 'Internet', about: 'open', toInternet: true },
    ],
    use: ['The network of SageMaker.', 'A job can send data anywhere.'],
  },
];

function panel({ name, vpc, ways, use }: Mode, i: number): string {
  const x = 14 + (i % 2) * 334;
  const y = 12 + Math.floor(i / 2) * 250;
  const exits = ways.map(({ to, about, toInternet }, way) => {
    const at = y + 58 + way * 60;
    return [
      arrow(`${x + 106},${at + 22} ${x + 214},${at + 22}`, toInternet ? 'bad' : 'muted'),
      text({ x: x + 179, y: at + 16 }, about, { anchor: 'middle', tint: 'muted', within: 76 }),
      box({ x: x + 216, y: at, width: 90, height: 44 }, toInternet ? 'bad' : 'c4', [to]),
    ].join('\n');
  });
  return [
    text({ x, y: y + 18 }, name, { bold: true }),
    vpc ? boundary({ x, y: y + 30, width: 140, height: 142 }, 'c7', vpc) : '',
    box({ x: x + 12, y: y + 64, width: 92, height: 94 }, 'c3', ['Job']),
    ...exits,
    lines({ x, y: y + 194 }, use, { within: 318 }),
  ].join('\n');
}

export const NETWORKS: Picture = {
  name: 'networks',
  title: 'Network modes',
  description: MODES.map(
    ({ name, ways, use }) => `${name}: ${ways.map(({ to, about }) => `${to} (${about})`).join(', ')}. ${use.join(' ')}`,
  ).join(' '),
  height: 540,
  parts: [
    ...MODES.map(panel),
    text({ x: 14, y: 522 }, 'In every mode SageMaker pulls the image and sends the logs from its own network.', {
      tint: 'muted',
    }),
  ],
};
