// Each construct alone in somebody else's stack.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Stack } from 'aws-cdk-lib';
import { Capture, Match, Template } from 'aws-cdk-lib/assertions';
import * as kms from 'aws-cdk-lib/aws-kms';
import { describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { environmentQuotaNeeds, QuotaPreflight, SpendGuard, TrainingImage, TrainingNetwork } from '../../lib/cdk';
import { guardedBy } from '../../lib/cdk/operations/guards';
import { resourcesOf, SYNTH_MS, specOf, statementsOf, testStack } from './support/app';

vi.setConfig({ testTimeout: SYNTH_MS });

const NEEDS = environmentQuotaNeeds([{ instanceType: 'ml.p4d.24xlarge', count: 2, usage: 'training' }]);
const READS = {
  Sid: 'ReadQuotas',
  Action: [
    'servicequotas:GetAWSDefaultServiceQuota',
    'servicequotas:GetServiceQuota',
    'servicequotas:ListServiceQuotas',
  ],
  Effect: 'Allow',
  Resource: '*',
};
const WRITES = {
  Sid: 'WriteOwnLogs',
  Action: ['logs:CreateLogGroup', 'logs:CreateLogStream', 'logs:PutLogEvents'],
  Effect: 'Allow',
  Resource: Match.anyValue(),
};

describe('QuotaPreflight', () => {
  const preflight = (requestIncrease: boolean) => {
    const stack = testStack();
    const made = new QuotaPreflight(stack, 'Preflight', { environment: 'research', needs: NEEDS, requestIncrease });
    const network = new TrainingNetwork(stack, 'Network', { prefix: 'x' });
    made.gate(network);
    return Template.fromStack(stack);
  };

  test('reads quotas and the state of its stack, and nothing else', () => {
    const statements = statementsOf(resourcesOf(preflight(false)), 'PreflightFunction');
    const state = expect.objectContaining({ Action: 'cloudformation:DescribeStacks' });
    expect(statements).toEqual([{ ...WRITES, Resource: expect.anything() }, READS, state]);
  });

  test('may ask for more only when it is told to', () => {
    const text = JSON.stringify(statementsOf(resourcesOf(preflight(true)), 'PreflightFunction'));
    expect(text).toContain('servicequotas:RequestServiceQuotaIncrease');
    expect(text).toContain('AWSServiceRoleForServiceQuotas');
  });

  test('what it gates depends on it', () => {
    preflight(false).hasResource('AWS::EC2::VPC', {
      DependsOn: Match.arrayWith([Match.stringLikeRegexp('^PreflightCheck')]),
    });
  });
});

describe('what the guard of replacements compares', () => {
  const ZONES = ['us-west-2a', 'us-west-2b'];
  const of = (more: object, zones: readonly string[] = ZONES) => guardedBy(specOf(more), () => zones);
  const byId = (...availabilityZoneIds: string[]) => ({ network: { availabilityZoneIds } });

  test.each([
    ['another mode', { network: { mode: 'vpc-nat' } }],
    ['subnets by zone id, which lie in another VPC', byId('usw2-az1')],
  ])('%s is another fingerprint', (_, more) => {
    expect(of(more).fingerprint).not.toBe(of({}).fingerprint);
  });

  test.each([
    ['a team more', { teams: { default: {}, nlp: {} } }],
    ['adoption', { storage: { adopt: true } }],
  ])('%s replaces nothing', (_, more) => {
    expect(of(more).fingerprint).toBe(of({}).fingerprint);
  });

  test('a zone more replaces nothing, in any order', () => {
    const [one, more] = [of(byId('usw2-az2')), of(byId('usw2-az3', 'usw2-az2'))];
    expect(more.fingerprint).toBe(one.fingerprint);
    expect(more.zones).toBe('["usw2-az2","usw2-az3"]');
  });
});

describe('TrainingImage', () => {
  const BASE = '763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch:2.13.0-cu133-amzn2023-sagemaker';
  const templateOf = (baseImageUri = BASE, context = {}) => {
    const stack = testStack(context);
    const image = new TrainingImage(stack, 'Image', {
      repositoryName: 'slipway-research',
      baseImageUri,
      key: new kms.Key(stack, 'Key'),
    });
    return { template: Template.fromStack(stack), uri: Stack.of(image).resolve(image.imageUri) };
  };
  const tagOf = (template: Template) =>
    Object.values(resourcesOf(template)).find((r) => r.Type === 'Custom::SlipwayTrainingImage')?.Properties.tag;

  test('tags cannot be moved, pushes are scanned, and the image is named by its digest', () => {
    const { template, uri } = templateOf();
    template.hasResourceProperties('AWS::ECR::Repository', {
      ImageTagMutability: 'IMMUTABLE',
      ImageScanningConfiguration: { ScanOnPush: true },
    });
    expect(JSON.stringify(uri)).toContain('Digest');
  });

  test('the tag is the hash of what goes in: another base is another image', () => {
    expect(tagOf(templateOf().template)).toBe(tagOf(templateOf().template));
    expect(tagOf(templateOf().template)).not.toBe(tagOf(templateOf(`${BASE}-v2`).template));
  });

  test('what linters and Python leave in the folder does not make another image', () => {
    const directory = mkdtempSync(path.join(tmpdir(), 'image-'));
    writeFileSync(path.join(directory, 'Dockerfile'), 'FROM scratch\n');
    const tagNow = () => {
      const stack = testStack();
      const key = new kms.Key(stack, 'Key');
      new TrainingImage(stack, 'Image', { repositoryName: 'own', baseImageUri: BASE, key, directory });
      return tagOf(Template.fromStack(stack));
    };
    const before = tagNow();
    for (const folder of ['.ruff_cache', '__pycache__']) {
      mkdirSync(path.join(directory, folder));
      writeFileSync(path.join(directory, folder, 'x'), folder);
    }
    expect(tagNow()).toBe(before);
    writeFileSync(path.join(directory, 'Dockerfile'), 'FROM scratch\nENV A=b\n');
    expect(tagNow()).not.toBe(before);
    rmSync(directory, { recursive: true });
  });

  test('bases stay, no image that a run has pulled within 90 days goes, and none is lost before it has lain archived for a year', () => {
    const policy = new Capture();
    templateOf().template.hasResourceProperties('AWS::ECR::Repository', {
      LifecyclePolicy: { LifecyclePolicyText: policy },
    });
    const { rules } = JSON.parse(policy.asString());
    const kept = rules.map(({ rulePriority, selection, action }: Record<string, object>) => [
      rulePriority,
      selection,
      action,
    ]);
    expect(kept).toEqual([
      [
        1,
        { tagStatus: 'tagged', tagPrefixList: ['base-'], countType: 'imageCountMoreThan', countNumber: 1000 },
        { type: 'expire' },
      ],
      [
        2,
        { tagStatus: 'untagged', countType: 'sinceImagePushed', countNumber: 7, countUnit: 'days' },
        { type: 'expire' },
      ],
      [
        3,
        { tagStatus: 'any', countType: 'sinceImagePulled', countNumber: 90, countUnit: 'days' },
        { type: 'transition', targetStorageClass: 'archive' },
      ],
      [
        4,
        {
          tagStatus: 'any',
          storageClass: 'archive',
          countType: 'sinceImageTransitioned',
          countNumber: 365,
          countUnit: 'days',
        },
        { type: 'expire' },
      ],
    ]);
  });

  test('the build pulls the base and its own repository, and pushes to its own alone', () => {
    const statements = statementsOf(resourcesOf(templateOf().template), 'ImageBuildRole');
    const push = statements.filter((s) => JSON.stringify(s.Action).includes('ecr:PutImage'));
    expect(push).toHaveLength(1);
    expect(push[0]?.Resource).toEqual({ 'Fn::GetAtt': [expect.stringMatching(/^ImageRepository/), 'Arn'] });
    expect(statements).toContainEqual({
      Sid: 'PullBase',
      Action: ['ecr:BatchCheckLayerAvailability', 'ecr:BatchGetImage', 'ecr:GetDownloadUrlForLayer'],
      Effect: 'Allow',
      Resource: 'arn:aws:ecr:us-west-2:763104351884:repository/pytorch',
    });
  });

  test.each([
    ['446045086412.dkr.ecr.us-gov-east-1.amazonaws.com/pytorch:1', 'arn:aws-us-gov:ecr:us-gov-east-1:446045086412'],
    ['727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/pytorch:1', 'arn:aws-cn:ecr:cn-north-1:727897471807'],
    ['204133271717.dkr.ecr.eusc-de-east-1.amazonaws.eu/pytorch:1', 'arn:aws-eusc:ecr:eusc-de-east-1:204133271717'],
  ])('the build pulls a base of another partition: %s', (base, arn) => {
    const statements = statementsOf(resourcesOf(templateOf(base).template), 'ImageBuildRole');
    expect(statements.map((s) => s.Resource)).toContainEqual(`${arn}:repository/pytorch`);
  });

  test('the build project runs docker build on the Dockerfile of the base, and another Dockerfile is another image', () => {
    const stack = testStack();
    const props = { repositoryName: 'own', baseImageUri: BASE, key: new kms.Key(stack, 'Key') };
    new TrainingImage(stack, 'Image', { ...props, dockerfile: 'cuda.Dockerfile' });
    const template = Template.fromStack(stack);
    template.hasResourceProperties('AWS::CodeBuild::Project', {
      Environment: {
        PrivilegedMode: true,
        Type: 'LINUX_CONTAINER',
        EnvironmentVariables: Match.arrayWith([
          { Name: 'BASE_IMAGE', Type: 'PLAINTEXT', Value: BASE },
          { Name: 'DOCKERFILE', Type: 'PLAINTEXT', Value: 'cuda.Dockerfile' },
        ]),
      },
    });
    const spec = new Capture();
    template.hasResourceProperties('AWS::CodeBuild::Project', { Source: { BuildSpec: spec } });
    const { phases } = parse(spec.asString());
    expect(phases.build.commands).toHaveLength(1);
    expect(tagOf(template)).not.toBe(tagOf(templateOf().template));
  });

  test('fails: a folder without a Dockerfile is named', () => {
    const stack = testStack();
    const props = { repositoryName: 'own', baseImageUri: BASE, key: new kms.Key(stack, 'Key'), directory: '/nowhere' };
    expect(() => new TrainingImage(stack, 'Image', props)).toThrow(
      'Test/Image: directory must contain a Dockerfile, got /nowhere; specify another directory',
    );
  });
});

describe('SpendGuard', () => {
  const budgetOf = (thresholdsPercent: number[], emails = ['a@b.c']) => {
    const stack = testStack();
    new SpendGuard(stack, 'Spend', { environment: 'research', monthlyUsd: 100, thresholdsPercent, emails });
    return Template.fromStack(stack);
  };
  const nameOf = (template: Template) => {
    const [budget] = Object.values(template.findResources('AWS::Budgets::Budget'));
    return budget?.Properties.Budget.BudgetName;
  };

  test('one notification per threshold, to everybody', () => {
    budgetOf([80]).hasResourceProperties('AWS::Budgets::Budget', {
      Budget: {
        BudgetName: Match.stringLikeRegexp('^slipway-research-us-west-2-[0-9a-f]{8}$'),
        BudgetLimit: { Amount: 100, Unit: 'USD' },
      },
      NotificationsWithSubscribers: [
        {
          Notification: { Threshold: 80, NotificationType: 'ACTUAL' },
          Subscribers: [{ Address: 'a@b.c', SubscriptionType: 'EMAIL' }],
        },
      ],
    });
  });

  test('other notifications, which replace the budget, come with another name', () => {
    const names = [budgetOf([80]), budgetOf([90]), budgetOf([80], ['d@e.f'])].map(nameOf);
    expect(new Set(names).size).toBe(3);
    expect(nameOf(budgetOf([80]))).toBe(names[0]);
  });
});
