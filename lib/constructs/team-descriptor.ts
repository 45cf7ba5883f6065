import { Stack } from 'aws-cdk-lib';
import * as ssm from 'aws-cdk-lib/aws-ssm';
import { Construct } from 'constructs';
import { descriptorParameter } from '../contracts/launcher';
import type { Descriptor } from '../spec/descriptor';

export interface TeamDescriptorProps {
  readonly descriptor: Descriptor;
}

/** The descriptor of one team, in SSM parameter `/slipway/environments/<name>/<team>`. Holds names and no secrets. */
export class TeamDescriptor extends Construct {
  public readonly parameterName: string;

  constructor(scope: Construct, id: string, { descriptor }: TeamDescriptorProps) {
    super(scope, id);
    this.parameterName = descriptorParameter(descriptor.name, descriptor.team);
    new ssm.StringParameter(this, 'Resource', {
      parameterName: this.parameterName,
      description: `Slipway environment ${descriptor.name}, team ${descriptor.team}`,
      stringValue: Stack.of(this).toJsonString(descriptor),
      // Guardrails, prices and external places may outgrow the 4 KB of the standard tier.
      tier: ssm.ParameterTier.INTELLIGENT_TIERING,
    });
  }
}
