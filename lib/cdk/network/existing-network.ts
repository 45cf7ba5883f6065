import { Duration } from 'aws-cdk-lib';
import { Construct } from 'constructs';
import type { ExistingNetwork as Network } from '../../core/config/environment/network';
import { EXISTING_NETWORK_TYPE } from '../../core/contracts/custom-resources';
import { HandlerFunction } from '../functions/handler-function';
import { HandlerResource } from '../functions/handler-resource';

/**
 * The check of an existing VPC: ids, routes to S3 and to what its options need, rules of the security groups, free addresses. A custom
 * resource fails the deploy with everything that is missing, and checks again when one of the ids or needs has changed; `slipway preflight`
 * can check at any time.
 */
export class ExistingNetwork extends Construct {
  constructor(scope: Construct, id: string, network: Network) {
    super(scope, id);
    const onEvent = new HandlerFunction(this, 'Function', {
      handler: 'existing-network',
      description: 'Checks the VPC that jobs run in',
      timeout: Duration.minutes(2),
    });
    onEvent.allow({
      sid: 'SeeExistingNetwork',
      actions: [
        'ec2:DescribeRouteTables',
        'ec2:DescribeSecurityGroups',
        'ec2:DescribeSubnets',
        'ec2:DescribeVpcEndpoints',
        'ec2:DescribeVpcs',
      ],
      resources: ['*'],
      wildcard: 'Describe actions of EC2 have no resource type.',
    });
    new HandlerResource(this, 'Check', {
      resourceType: EXISTING_NETWORK_TYPE,
      onEvent,
      asksForStack: true,
      serviceTimeout: Duration.minutes(4),
      properties: { network: JSON.stringify(network) },
    });
  }
}
