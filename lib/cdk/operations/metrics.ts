import { Duration } from 'aws-cdk-lib';
import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import { JOB_LOG_GROUPS } from '../../core/contracts/names';

/** What the one axis of a graph counts. */
type GraphUnit = 'runs' | 'instances' | 'USD' | 'percent' | 'calls' | 'milliseconds' | 'messages';

/** Half a row of a dashboard: metrics of one unit on one labelled axis, so that no line is read on the scale of another. */
export const unitGraph = (
  title: string,
  unit: GraphUnit,
  left: cloudwatch.IMetric[],
  leftAnnotations?: cloudwatch.HorizontalAnnotation[],
): cloudwatch.GraphWidget =>
  new cloudwatch.GraphWidget({
    title,
    left,
    leftAnnotations,
    width: 12,
    period: Duration.minutes(5),
    leftYAxis: { min: 0, ...(unit === 'percent' && { max: 100 }), label: unit, showUnits: false },
  });

/** SageMaker's instance metric of every job of an environment; the dimension is `<job>/algo-<n>`. */
export function jobHostMetric(environment: string, name: string): cloudwatch.IMetric {
  return new cloudwatch.MathExpression({
    expression: `SEARCH('{${JOB_LOG_GROUPS.training},Host} MetricName="${name}" ${environment}-', 'Average', 300)`,
    usingMetrics: {},
    label: '',
  });
}
