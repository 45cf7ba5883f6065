import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { classify, failureFile, signatureOf } from '../../../lib/core/lifecycle/classify';
import type { FailureClass } from '../../../lib/core/lifecycle/record';
import { draws } from '../../support/draws';
import { attempt, failedJob, job, T0 } from './support/records';

const file = (code: number, failureClass: string) =>
  `AlgorithmError: , exit code: ${code}\n{"slipway":1,"class":"${failureClass}","code":${code},"host":"algo-3","rank":17,"step":1200,"reason":"x"}\nTraceback`;

test.each<[string, FailureClass]>([
  [file(70, 'hang'), 'hang'],
  [file(71, 'checkpoint'), 'checkpoint'],
  [file(71, 'checkpoint').replace('"x"', '"put: S3 answered 403 AccessDenied (request id 4F)"'), 'access'],
  [file(71, 'checkpoint').replace('"x"', '"put: S3 answered 503 SlowDown (request id 4F)"'), 'platform'],
  [file(72, 'data'), 'data'],
  [file(72, 'data').replace('"x"', '"get: S3 answered 403 AccessDenied (request id 4F)"'), 'access'],
  [file(71, 'checkpoint').replace('"x"', '"Client error: Forbidden: <no message>"'), 'access'],
  // A key that is disabled, about to be deleted or deleted (localstack/localstack#8422), an archived object: no checkpoint is to blame.
  ...['KMS.DisabledException', 'KMS.KMSInvalidStateException', 'KMS.NotFoundException', 'InvalidObjectState'].flatMap(
    (code): [string, FailureClass][] => [
      [file(71, 'checkpoint').replace('"x"', `"get: S3 answered 400 ${code} (request id 4F)"`), 'access'],
      [file(72, 'data').replace('"x"', `"get: S3 answered 400 ${code} (request id 4F)"`), 'access'],
    ],
  ),
  [file(71, 'checkpoint').replace('"x"', '"read: [Errno 13] Permission denied: \'/opt/ml/x\'"'), 'access'],
  // Denials in the words of other clients: test/public/control.md.
  ...[
    'ClientError: An error occurred (KMS.NotFoundException) when calling the PutObject operation: Invalid keyId aws/s3',
    'ClientError: An error occurred (AccessDenied) when calling the CreateMultipartUpload operation: Access Denied',
    "OSError: When getting information for key 'a' in bucket 'b': AWS Error ACCESS_DENIED during HeadObject operation: No response body.",
    'PermissionError: Access Denied',
    'PermissionError: Forbidden',
    "PermissionError: The operation is not valid for the object's storage class",
    'AmazonS3Exception: Access Denied (Service: Amazon S3; Status Code: 403)',
    'PermissionDeniedError: /mnt/runs/step-10.tmp; Permission denied',
    'open file failed because of errno 30 on fopen: Read-only file system, file path: /data/step-10/a.distcp',
    'AWSError InvalidAccessKeyId: The AWS Access Key Id you provided does not exist in our records.',
  ].flatMap((text): [string, FailureClass][] => [
    [file(71, 'checkpoint').replace('"x"', JSON.stringify(text)), 'access'],
    [file(72, 'data').replace('"x"', JSON.stringify(text)), 'access'],
  ]),
  [file(71, 'checkpoint').replace('"x"', '"read: [Errno 2] No such file"'), 'checkpoint'],
  [file(71, 'checkpoint').replace('"x"', '"get: S3 answered 503 SlowDown (request id 4F)"'), 'platform'],
  [`${file(1, 'user-code')} AccessDenied`, 'user-code'],
  [file(73, 'loss'), 'loss'],
  [file(74, 'efa'), 'efa'],
  [file(75, 'retry'), 'retry'],
  [file(75, 'hardware'), 'platform'],
  [file(75, 'driver-lost'), 'platform'],
  [file(1, 'hardware'), 'platform'],
  [file(76, 'deadline'), 'planned'],
  [file(77, 'digest'), 'config'],
  [file(1, 'user-code'), 'user-code'],
  [`${file(1, 'user-code')} Connection reset by peer`, 'user-code'],
  [file(1, 'peer-lost'), 'platform'],
  [file(75, 'peer-lost'), 'platform'],
  [file(137, 'host-memory'), 'memory'],
  [file(137, 'user-code'), 'platform'],
  ['AlgorithmError: Exit Code: 70', 'hang'],
  ['AlgorithmError: ExecuteUserScriptError: ValueError: bad hyperparameter\nExitCode 1', 'user-code'],
  ['AlgorithmError: CUDA out of memory. Tried to allocate 2.00 GiB, exit code: 1', 'user-code'],
  ['AlgorithmError: exit code: 137', 'platform'],
  ['AlgorithmError: Out of memory: Killed process 311 (python), exit code: 137', 'memory'],
  ['AlgorithmError: [Rank 3] NCCL error: remote process exited or there was a network error, exit code: 1', 'platform'],
  ['AlgorithmError: RuntimeError: Connection closed by peer [10.0.0.4]:29400, exit code: 1', 'platform'],
  ['InternalServerError: We encountered an internal error. Please try again.', 'platform'],
  [
    'CapacityError: Unable to provision requested ML compute capacity. Please retry using a different ML instance type.',
    'capacity',
  ],
  // What the service writes when the kernel has killed the container.
  ['ClientError: Please use an instance type with more memory, or reduce the size of the training data', 'memory'],
  ['ClientError: Artifact upload failed:ClientError: Out of Memory. Please use a larger instance', 'memory'],
  // huggingface/blog#114
  ['ClientError: Artifact upload failed:Insufficient disk space', 'config'],
  ['ClientError: Data download failed: AccessDenied for s3://bucket/key', 'access'],
  ['ClientError: CannotPullContainerError: image not found', 'access'],
  ['ClientError: No space left on device', 'config'],
  ['', 'user-code'],
])('%s', (reason, failureClass) => {
  expect(classify(failedJob(reason), attempt()).failureClass).toBe(failureClass);
});

test('an outage of the storage is a failure of the service, whatever the exit code of the program that it ended', () => {
  const outage = fc.oneof(
    fc.constantFrom(0, 408, 429, 500, 502, 503, 504).map((n) => `GET s3://b/runs/x: S3 answered ${n} SlowDown (id R)`),
    fc.constant('the storage does not answer: /fsx/step-6: could not be read: [Errno 5] Input/output error'),
  );
  const others = fc.constantFrom('S3 answered 403 AccessDenied (id R)', 'S3 answered 404 NoSuchKey (id R)', 'EOF');
  const ended = fc.constantFrom([71, 'checkpoint'], [72, 'data'], [75, 'retry'], [1, 'user-code']);
  const ofText = (code: unknown, word: unknown, reason: string, lines = '') =>
    classify(
      failedJob(`AlgorithmError: ${JSON.stringify({ slipway: 1, class: word, code, reason })}\n${lines}`),
      attempt(),
    ).failureClass;
  fc.assert(
    fc.property(ended, outage, others, ([code, word], text, other) => {
      expect(ofText(code, word, text)).toBe('platform');
      // The client has logged its tries before another error.
      expect(ofText(code, word, other, text)).toBe(ofText(code, word, other));
      expect(ofText(code, word, other)).not.toBe('platform');
      expect(ofText(70, 'hang', text)).toBe('hang');
    }),
    { numRuns: draws(50) },
  );
});

test('aws/amazon-sagemaker-feedback#99: the words of every service for capacity, unless a container writes them', () => {
  const words = fc.constantFrom(
    "EC2InsufficientCapacityError: Instance type 'ml.g5.48xlarge' is temporarily unavailable in supported availability zones",
    'InsufficientInstanceCapacity: We currently do not have sufficient capacity',
    'CapacityError: Unable to provision requested ML compute capacity.',
    'Insufficient capacity',
  );
  fc.assert(
    fc.property(words, fc.constantFrom('', ' ', 'ClientError: '), fc.string(), (text, before, after) => {
      const classOf = (reason: string) => classify(failedJob(reason), attempt()).failureClass;
      expect(classOf(`${before}${text} ${after}`)).toBe('capacity');
      expect(classOf(`AlgorithmError: ${text}, exit code: 1`)).toBe('user-code');
    }),
    { numRuns: draws(50) },
  );
});

describe('Stopped', () => {
  const stopped = (secondaryStatus: string, failureReason = '') =>
    job({ status: 'Stopped', secondaryStatus, failureReason });

  test('at the run-time limit is a planned hand-over', () => {
    expect(classify(stopped('MaxRuntimeExceeded'), attempt()).failureClass).toBe('planned');
  });

  test('for want of spot capacity is capacity', () => {
    expect(classify(stopped('MaxWaitTimeExceeded'), attempt()).failureClass).toBe('capacity');
  });

  test.each([
    ['hang', 'hang'],
    ['user', 'planned'],
    ['spend', 'planned'],
  ] as const)('by our own stop (%s) is %s', (why, failureClass) => {
    const own = attempt({ stop: { why, at: T0, text: 'because' } });
    expect(classify(stopped('Stopped'), own)).toMatchObject({ failureClass, reason: 'because' });
  });

  test('by nobody we know is a stop from outside', () => {
    expect(classify(stopped('Stopped'), attempt()).failureClass).toBe('outside-stop');
  });
});

test('a job that never trained and waited to two minutes before its pending limit was stopped by it', () => {
  const waited = (seconds: number, more: object = {}) =>
    classify(
      job({
        status: 'Stopped',
        secondaryStatus: 'Stopped',
        trainingStartedAt: undefined,
        createdAt: T0,
        endedAt: T0 + seconds * 1000,
        ...more,
      }),
      attempt({ trainingStartedAt: undefined }),
      7200,
    ).failureClass;
  expect(waited(7080)).toBe('capacity');
  expect(waited(7079)).toBe('outside-stop');
  expect(waited(7200, { trainingStartedAt: T0 })).toBe('outside-stop');
  expect(waited(7200, { endedAt: undefined })).toBe('outside-stop');
});

test.each<[string, object]>([
  ['step 1200: loss nan', { step: 1200 }],
  ['at step 1200', {}],
])('a reason that names its step (%s) gives %o', (reason, step) => {
  const failed = `AlgorithmError: {"slipway":1,"class":"loss","code":73,"step":1190,"reason":"${reason}"}`;
  const verdict = classify(failedJob(failed), attempt());
  expect(verdict).toMatchObject({ failureClass: 'loss', lastStep: 1190, text: reason, ...step });
  expect('step' in verdict).toBe('step' in step);
});

test('long texts are cut at 200 characters, on one line', () => {
  const said = (text: string) => classify(failedJob(`ClientError: ${text}`), attempt()).reason;
  const remaining = 200 - 'ClientError: '.length;
  expect(said('x'.repeat(remaining))).toMatch(/x$/);
  expect(said('x'.repeat(remaining + 1))).toMatch(/^the service refused: ClientError: x{184}\.\.\.$/);
  expect(said('a \n  b')).toBe('the service refused: ClientError: a b');
});

test('broken hardware is said in the words of the driver', () => {
  const reason = file(75, 'hardware').replace('"x"', '"GPU 3 is gone (Xid 79): no spare host is left"');
  expect(classify(failedJob(reason), attempt())).toMatchObject({
    failureClass: 'platform',
    exitCode: 75,
    reason: "a host's hardware broke on algo-3: GPU 3 is gone (Xid 79): no spare host is left",
  });
});

describe('failure file', () => {
  test('that the service cut in the middle still gives code and class', () => {
    expect(failureFile('AlgorithmError: {"slipway":1,"class":"hang","code":70,"reason":"all ranks wai')).toMatchObject({
      code: 70,
      failureClass: 'hang',
    });
  });

  test.each([
    ['whole', '{"slipway":1,"class":"user-code","code":1,"host":"algo-1","reason":"ValueError: bad \\"shape\\""}'],
    ['cut', '{"slipway":1,"class":"user-code","code":1,"host":"algo-1","reason":"ValueError: bad \\"shape\\"'],
  ])('%s, it is told in words and never as JSON', (_how, file) => {
    const { reason } = classify(failedJob(`AlgorithmError: , exit code: 1\n${file}`), attempt());
    expect(reason).toBe('the training code failed on algo-1: ValueError: bad "shape"');
  });

  test('that gives no reason leaves the words of the service', () => {
    const reason = 'AlgorithmError: , exit code: 137\n{"slipway":1,"code":137}';
    expect(classify(failedJob(reason), attempt()).reason).toBe('a host was lost: AlgorithmError: exit code: 137');
  });

  test('that is no JSON of ours says nothing', () => {
    expect(failureFile('AlgorithmError: {"other":1}')).toEqual({});
  });
});

test('signatures of one failure on different hosts and steps are equal', () => {
  expect(signatureOf('algo-3 rank 17 step 1200 at 0x7f3a: boom 2026-11-21T12:00:00Z')).toBe(
    signatureOf('algo-12 rank 4 step 90 at 0x11: boom 2026-11-22T01:10:09Z'),
  );
});
