// USD per instance-hour, on demand. Retrieved 2026-11-20.
// Observed: Price List rows and run journals (us-west-2 2026-09-01/16, us-east-1 2026-08). The Studio-JupyterLab rate equals the
// training rate for every pair that was checked. Estimates: EC2 on-demand us-east-1 of 2026-07-20 (karpenter-provider-aws
// zz_generated.pricing_aws.go) x 1.15 (P) or x 1.25 (G), x 1.40 (G .xlarge): a ratio, not a published price.

/** A price observed on a date, and the SageMaker component that it belongs to. */
export interface ObservedPrice {
  usdPerHour: number;
  asOf: string;
  component: string;
}

/** On-demand prices by type and region, in USD per instance-hour. */
export const OBSERVED_PRICES: Readonly<Record<string, Readonly<Record<string, ObservedPrice>>>> = {
  'ml.g4dn.2xlarge': { 'us-west-2': { usdPerHour: 0.94, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.g4dn.xlarge': { 'us-west-2': { usdPerHour: 0.7364, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.g5.12xlarge': { 'us-west-2': { usdPerHour: 7.09, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.g5.24xlarge': { 'us-west-2': { usdPerHour: 10.18, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.g5.2xlarge': {
    'us-east-1': { usdPerHour: 1.515, asOf: '2026-08-20', component: 'Training' },
    'us-west-2': { usdPerHour: 1.52, asOf: '2026-09-01', component: 'Studio-JupyterLab' },
  },
  'ml.g5.48xlarge': { 'us-west-2': { usdPerHour: 20.36, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.g5.4xlarge': { 'us-west-2': { usdPerHour: 2.03, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.g5.8xlarge': { 'us-west-2': { usdPerHour: 3.06, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.g5.xlarge': { 'us-west-2': { usdPerHour: 1.41, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.g6.12xlarge': { 'us-west-2': { usdPerHour: 5.752, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.g6.24xlarge': { 'us-west-2': { usdPerHour: 8.344, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.g6.2xlarge': { 'us-west-2': { usdPerHour: 1.222, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.g6.48xlarge': { 'us-west-2': { usdPerHour: 16.688, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.g6.4xlarge': { 'us-west-2': { usdPerHour: 1.654, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.g6.xlarge': { 'us-west-2': { usdPerHour: 1.127, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.g7e.12xlarge': { 'us-west-2': { usdPerHour: 10.3576, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.g7e.24xlarge': { 'us-west-2': { usdPerHour: 20.7152, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.g7e.2xlarge': { 'us-west-2': { usdPerHour: 4.2039, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.g7e.48xlarge': { 'us-west-2': { usdPerHour: 41.4304, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.g7e.4xlarge': { 'us-west-2': { usdPerHour: 4.9977, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.g7e.8xlarge': { 'us-west-2': { usdPerHour: 6.5853, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.m5.2xlarge': { 'us-west-2': { usdPerHour: 0.461, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.m5.large': {
    'us-east-1': { usdPerHour: 0.115, asOf: '2026-08-11', component: 'Training' },
    'us-west-2': { usdPerHour: 0.115, asOf: '2026-09-01', component: 'Studio-JupyterLab' },
  },
  'ml.m5.xlarge': { 'us-west-2': { usdPerHour: 0.23, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.p4d.24xlarge': { 'us-west-2': { usdPerHour: 25.251286, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
  'ml.p5.48xlarge': { 'us-west-2': { usdPerHour: 63.296, asOf: '2026-09-16', component: 'Training' } },
  'ml.t3.medium': { 'us-west-2': { usdPerHour: 0.05, asOf: '2026-09-01', component: 'Studio-JupyterLab' } },
};

/** Prices estimated from EC2 prices, in USD per instance-hour; plans mark them as estimates. */
export const ESTIMATED_PRICES: Readonly<Record<string, { usdPerHour: number; asOf: string }>> = {
  'ml.p4d.24xlarge': { usdPerHour: 25.2513, asOf: '2026-07-20' },
  'ml.p4de.24xlarge': { usdPerHour: 31.5641, asOf: '2026-07-20' },
  'ml.p5.4xlarge': { usdPerHour: 7.912, asOf: '2026-07-20' },
  'ml.p5.48xlarge': { usdPerHour: 63.296, asOf: '2026-07-20' },
  'ml.p5en.48xlarge': { usdPerHour: 72.7904, asOf: '2026-07-20' },
  'ml.p6-b200.48xlarge': { usdPerHour: 131.0227, asOf: '2026-07-20' },
  'ml.p6-b300.48xlarge': { usdPerHour: 163.7784, asOf: '2026-07-20' },
  'ml.g5.xlarge': { usdPerHour: 1.4084, asOf: '2026-07-20' },
  'ml.g5.2xlarge': { usdPerHour: 1.515, asOf: '2026-07-20' },
  'ml.g5.4xlarge': { usdPerHour: 2.03, asOf: '2026-07-20' },
  'ml.g5.8xlarge': { usdPerHour: 3.06, asOf: '2026-07-20' },
  'ml.g5.12xlarge': { usdPerHour: 7.09, asOf: '2026-07-20' },
  'ml.g5.16xlarge': { usdPerHour: 5.12, asOf: '2026-07-20' },
  'ml.g5.24xlarge': { usdPerHour: 10.18, asOf: '2026-07-20' },
  'ml.g5.48xlarge': { usdPerHour: 20.36, asOf: '2026-07-20' },
  'ml.g6.xlarge': { usdPerHour: 1.1267, asOf: '2026-07-20' },
  'ml.g6.2xlarge': { usdPerHour: 1.222, asOf: '2026-07-20' },
  'ml.g6.4xlarge': { usdPerHour: 1.654, asOf: '2026-07-20' },
  'ml.g6.8xlarge': { usdPerHour: 2.518, asOf: '2026-07-20' },
  'ml.g6.12xlarge': { usdPerHour: 5.752, asOf: '2026-07-20' },
  'ml.g6.16xlarge': { usdPerHour: 4.246, asOf: '2026-07-20' },
  'ml.g6.24xlarge': { usdPerHour: 8.344, asOf: '2026-07-20' },
  'ml.g6.48xlarge': { usdPerHour: 16.688, asOf: '2026-07-20' },
  'ml.g6e.xlarge': { usdPerHour: 2.6054, asOf: '2026-07-20' },
  'ml.g6e.2xlarge': { usdPerHour: 2.8026, asOf: '2026-07-20' },
  'ml.g6e.4xlarge': { usdPerHour: 3.7553, asOf: '2026-07-20' },
  'ml.g6e.8xlarge': { usdPerHour: 5.6607, asOf: '2026-07-20' },
  'ml.g6e.12xlarge': { usdPerHour: 13.1158, asOf: '2026-07-20' },
  'ml.g6e.16xlarge': { usdPerHour: 9.4715, asOf: '2026-07-20' },
  'ml.g6e.24xlarge': { usdPerHour: 18.832, asOf: '2026-07-20' },
  'ml.g6e.48xlarge': { usdPerHour: 37.664, asOf: '2026-07-20' },
  'ml.g7e.2xlarge': { usdPerHour: 4.2039, asOf: '2026-07-20' },
  'ml.g7e.4xlarge': { usdPerHour: 4.9977, asOf: '2026-07-20' },
  'ml.g7e.8xlarge': { usdPerHour: 6.5853, asOf: '2026-07-20' },
  'ml.g7e.12xlarge': { usdPerHour: 10.3576, asOf: '2026-07-20' },
  'ml.g7e.24xlarge': { usdPerHour: 20.7152, asOf: '2026-07-20' },
  'ml.g7e.48xlarge': { usdPerHour: 41.4304, asOf: '2026-07-20' },
  'ml.g7.2xlarge': { usdPerHour: 3.15, asOf: '2026-07-20' },
  'ml.g7.4xlarge': { usdPerHour: 3.8026, asOf: '2026-07-20' },
  'ml.g7.8xlarge': { usdPerHour: 5.1078, asOf: '2026-07-20' },
  'ml.g7.12xlarge': { usdPerHour: 8.9104, asOf: '2026-07-20' },
  'ml.g7.24xlarge': { usdPerHour: 17.8208, asOf: '2026-07-20' },
  'ml.g7.48xlarge': { usdPerHour: 35.6416, asOf: '2026-07-20' },
};
