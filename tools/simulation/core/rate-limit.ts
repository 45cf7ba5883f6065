import type { SimMs } from './clock';

/** A token bucket: `perSecond` tokens are added per second, and the bucket holds the tokens of one second. */
export class RateLimit {
  private tokens: number;
  private at: SimMs = 0;

  constructor(private readonly perSecond: number) {
    this.tokens = Math.max(1, perSecond);
  }

  /** Takes one token; false when the bucket is empty. */
  take(now: SimMs): boolean {
    const refilled = this.tokens + ((now - this.at) / 1000) * this.perSecond;
    this.tokens = Math.min(Math.max(1, this.perSecond), refilled);
    this.at = now;
    if (this.tokens < 1) return false;
    this.tokens -= 1;
    return true;
  }
}

/**
 * Calls per second that the services allow, from AWS documentation or user reports; other calls are not limited. CreateTrainingJob and
 * ListTrainingJobs: https://github.com/aws-solutions/deepracer-on-aws/issues/87 and the quota "Rate of CreateTrainingJob requests";
 * GetParameter: the default of https://docs.aws.amazon.com/general/latest/gr/ssm.html; GetServiceQuota:
 * https://docs.aws.amazon.com/servicequotas/latest/userguide/reference_limits.html; a FIFO queue without high throughput:
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html. Read 2026-11-22.
 */
export const DEFAULT_RATES: Readonly<Record<string, number>> = {
  'sagemaker:CreateTrainingJob': 1,
  'sagemaker:ListTrainingJobs': 2,
  'ssm:GetParameter': 40,
  'servicequotas:GetServiceQuota': 5,
  'sqs:SendMessage': 300,
  'sqs:SendMessageBatch': 300,
  'sqs:ChangeMessageVisibility': 300,
};
/** S3's limits apply per prefix: https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html */

/** The error of a call above the rate, by service. */
export const THROTTLE_OF: Readonly<Record<string, readonly [name: string, status: number]>> = {
  servicequotas: ['TooManyRequestsException', 429],
  s3: ['SlowDown', 503],
  sqs: ['RequestThrottled', 400],
  sns: ['ThrottledException', 400],
  lambda: ['TooManyRequestsException', 429],
};
