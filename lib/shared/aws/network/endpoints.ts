import type { VpcEndpoint } from '@aws-sdk/client-ec2';
import type { Issue } from '../../../core/config/issue';
import { includesAction, includesResource, type PolicyStatement, statementsIn } from '../policy-document';
import { networkIssue } from './network-issue';

/** An endpoint that jobs can use: the gateway endpoint of S3 in some route tables, or an interface endpoint. */
export interface UsableEndpoint extends VpcEndpoint {
  /** The last part of the service name. */
  service: string;
}

/** Without private DNS, or with private DNS for an inbound resolver only, a service's domain name does not lead to its endpoint. */
export function usableEndpoints(all: readonly VpcEndpoint[], region: string): UsableEndpoint[] {
  // com.amazonaws.<region>.<service>, or aws.sagemaker.<region>.experiments.
  const prefix = new RegExp(`^[a-z.]+?\\.${region}\\.`);
  return all
    .map((one) => ({ ...one, service: (one.ServiceName ?? '').replace(prefix, '') }))
    .filter(({ State = 'available', VpcEndpointType, service, PrivateDnsEnabled, DnsOptions, RouteTableIds = [] }) => {
      const isGateway = VpcEndpointType === 'Gateway' && service === 's3' && RouteTableIds.length > 0;
      const isNamed = PrivateDnsEnabled !== false && DnsOptions?.PrivateDnsOnlyForInboundResolverEndpoint !== true;
      return /^available$/i.test(State) && (isGateway || (VpcEndpointType === 'Interface' && isNamed));
    });
}

/** Issues of an endpoint whose policy allows nothing, or does not let jobs use their buckets. Conditions may hold, except in a denial. */
export function policyIssues({ VpcEndpointId, PolicyDocument }: VpcEndpoint, buckets: readonly string[]): Issue[] {
  if (!PolicyDocument) return [];
  const statements = statementsIn(PolicyDocument);
  const allowing = statements.filter(({ Effect }) => Effect === 'Allow');
  const denying = statements.filter(({ Effect, Condition }) => Effect === 'Deny' && !Condition);
  const denied = buckets.filter((bucket) =>
    ['s3:GetObject', 's3:PutObject'].some((action) => {
      // NotAction and NotResource may name them or not.
      const names = (one: PolicyStatement) =>
        (one.Action ? includesAction(one, action) : one.Effect === 'Allow') &&
        (one.Resource ? includesResource(one, `${bucket}/*`) : one.Effect === 'Allow');
      return !allowing.some(names) || denying.some(names);
    }),
  );
  if (allowing.length > 0 && denied.length === 0) return [];
  const what = allowing.length === 0 ? 'requests' : `s3:GetObject and s3:PutObject for ${denied.join(', ')}`;
  return [
    networkIssue('warning', 'vpcId', {
      must: `should have endpoints whose policies allow ${what}`,
      got: `the policy of ${VpcEndpointId}, which does not`,
      fix: 'extend it; what it leaves out is denied',
    }),
  ];
}
