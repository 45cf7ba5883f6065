// Only the quota check, in front of a stack of one's own: nothing that the check gates is made while a SageMaker quota is too small.
import { App, Stack, type StackProps } from 'aws-cdk-lib';
import * as s3 from 'aws-cdk-lib/aws-s3';
import { environmentQuotaNeeds, QuotaPreflight } from 'slipway';

export class OwnStack extends Stack {
  constructor(scope: App, id: string, props: StackProps) {
    super(scope, id, props);
    const preflight = new QuotaPreflight(this, 'Quotas', {
      environment: 'own',
      needs: environmentQuotaNeeds([{ instanceType: 'ml.p5.48xlarge', count: 4, usage: 'training' }]),
      enforce: 'fail',
    });
    const data = new s3.Bucket(this, 'Data', { enforceSSL: true });
    preflight.gate(data);
  }
}

const app = new App();
new OwnStack(app, 'Own', { env: { account: '111122223333', region: 'us-west-2' } });
app.synth();
