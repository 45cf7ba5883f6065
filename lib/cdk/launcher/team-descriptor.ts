import { Stack } from 'aws-cdk-lib';
import * as ssm from 'aws-cdk-lib/aws-ssm';
import { Construct } from 'constructs';
import type { Descriptor } from '../../core/config/descriptor';
import { descriptorParameter, teamsParameter } from '../../core/contracts/launcher';

/** Properties of `TeamDescriptor`. */
export interface TeamDescriptorProps {
  /** Information about the environment for the command line and the functions. */
  readonly descriptor: Descriptor;
}

/** The descriptor of one team, in the SSM parameter `/slipway/environments/<name>/<team>`. Contains names and no secrets. */
export class TeamDescriptor extends Construct {
  /** Name of the SSM parameter. */
  public readonly parameterName: string;

  constructor(scope: Construct, id: string, { descriptor }: TeamDescriptorProps) {
    super(scope, id);
    this.parameterName = descriptorParameter(descriptor.name, descriptor.team);
    new ssm.StringParameter(this, 'Resource', {
      parameterName: this.parameterName,
      description: `Slipway environment ${descriptor.name}, team ${descriptor.team}`,
      stringValue: Stack.of(this).toJsonString(descriptor),
      // Guardrails, prices and external locations may exceed the 4 KB of the standard tier.
      tier: ssm.ParameterTier.INTELLIGENT_TIERING,
    });
  }
}

/** Properties of `TeamNames`. */
export interface TeamNamesProps {
  /** Name of the environment. */
  readonly environment: string;
  /** Names of its teams. */
  readonly teams: readonly string[];
}

/**
 * The names of an environment's teams: `--environment research` uses them to find the caller's own team, and to list the teams when a name
 * is wrong.
 */
export class TeamNames extends Construct {
  constructor(scope: Construct, id: string, { environment, teams }: TeamNamesProps) {
    super(scope, id);
    new ssm.StringListParameter(this, 'Resource', {
      parameterName: teamsParameter(environment),
      description: `Slipway environment ${environment}, teams`,
      stringListValue: [...teams],
    });
  }
}
