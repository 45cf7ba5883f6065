import { type Area, arrow, boundary, box, lines, mark, type Picture, text } from './canvas';

const at = (x: number, y: number, width: number, height: number): Area => ({ x, y, width, height });

const PEOPLE = [
  box(at(10, 78, 138, 58), 'c5', ['Researcher', 'slipway launch']),
  box(at(10, 156, 138, 58), 'c5', ['CI of a team', 'slipway launch']),
  box(at(10, 300, 138, 58), 'c5', ['Platform team', 'cdk deploy']),
];

const CONTROL_PLANE = [
  boundary(at(190, 42, 468, 192), 'c1', 'Control plane'),
  box(at(206, 74, 134, 74), 'c1', ['control', 'checks the run', 'writes intent']),
  box(at(366, 74, 118, 74), 'c8', ['Queue', 'one message', 'per run']),
  box(at(510, 74, 134, 92), 'c1', ['reconcile', 'on events and', 'every 5 minutes', 'starts and stops']),
  box(at(240, 182, 202, 40), 'c4', ['Run table (DynamoDB)']),
];

const host = (x: number, name: string): string => box(at(x, 330, 112, 66), 'c3', [name, 'driver', 'starts ranks']);

const TRAINING = [
  boundary(at(190, 258, 308, 162), 'c7', 'VPC: no internet by default'),
  `<g>${box(at(204, 288, 280, 120), 'c3', [''])}</g>`,
  text({ x: 216, y: 312 }, 'SageMaker training job', { bold: true }),
  host(214, 'Host 1'),
  host(362, 'Host n'),
  text({ x: 344, y: 356 }, 'EFA', { anchor: 'middle' }),
  arrow('328,368 360,368'),
  arrow('360,368 328,368'),
  box(at(524, 330, 130, 66), 'c8', ['ECR', 'image, pinned', 'by its digest']),
];

const STORAGE = [
  boundary(at(190, 446, 468, 92), 'c4', 'S3 buckets: KMS key, a prefix per team'),
  box(at(204, 476, 134, 52), 'c4', ['data', 'tokens']),
  box(at(352, 476, 134, 52), 'c4', ['checkpoints', 'and heartbeats']),
  box(at(500, 476, 146, 52), 'c4', ['artifacts', 'code and driver']),
];

const ARROWS = [
  arrow('148,107 204,107'),
  arrow('148,185 166,185 166,122 204,122'),
  arrow('148,329 176,329'),
  arrow('340,111 364,111'),
  arrow('484,111 508,111'),
  arrow('273,148 273,180'),
  arrow('538,166 538,202 444,202'),
  arrow('590,166 590,304 486,304'),
  arrow('524,363 486,363'),
  arrow('344,408 344,444'),
  arrow('344,444 344,410'),
  text({ x: 366, y: 438 }, 'through the S3 endpoint'),
];

const LEGEND = [
  mark({ x: 184, y: 107 }, 1),
  mark({ x: 590, y: 250 }, 2),
  mark({ x: 318, y: 433 }, 3),
  mark({ x: 22, y: 574 }, 1),
  lines({ x: 42, y: 579 }, ['IAM lets people invoke only the alias of their own team, and the alias names the team.']),
  mark({ x: 22, y: 602 }, 2),
  lines({ x: 42, y: 607 }, ['Only reconcile creates jobs and passes roles. No person may invoke it.']),
  mark({ x: 22, y: 630 }, 3),
  lines({ x: 42, y: 635 }, ['A job has the role of its team: own prefixes and shared data, no other role.']),
];

export const ARCHITECTURE: Picture = {
  name: 'architecture',
  title: 'Architecture of Slipway, with its trust boundaries',
  description:
    'People and CI invoke the control function through the alias of their team. It checks the run and writes its intent to the run table. A queue wakes reconcile, the only function that creates SageMaker training jobs and passes roles. The job runs in a VPC: a driver on each host starts the ranks, which read data from S3 and write checkpoints to S3. The image comes from ECR. The platform team deploys all of it with the CDK.',
  height: 650,
  parts: [
    boundary(at(176, 10, 494, 540), 'muted', 'AWS account, one Region'),
    ...PEOPLE,
    ...CONTROL_PLANE,
    ...TRAINING,
    ...STORAGE,
    ...ARROWS,
    ...LEGEND,
  ],
};
