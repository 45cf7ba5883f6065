import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import { JOB_LOG_GROUPS } from '../../core/contracts/job-log-groups';

/** SageMaker's instance metric of every job of an environment; the dimension is `<job>/algo-<n>`. */
export function jobHostMetric(environment: string, name: string): cloudwatch.IMetric {
  return new cloudwatch.MathExpression({
    expression: `SEARCH('{${JOB_LOG_GROUPS.training},Host} MetricName="${name}" ${environment}-', 'Average', 300)`,
    usingMetrics: {},
    label: '',
  });
}
