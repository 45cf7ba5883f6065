import { Fn, Stack } from 'aws-cdk-lib';
import * as ec2 from 'aws-cdk-lib/aws-ec2';
import * as logs from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import { endpointServices, interfaceEndpointPolicy, s3EndpointPolicy } from './network-endpoints';
import { isSandbox } from './sandbox-context';

/** Addresses of the VPC; the endpoints' group names them literally, so that no rule needs a look-up. */
const VPC_CIDR = '10.64.0.0/16';
/** 8,187 usable addresses a zone: five per EFA instance leave room for more than a thousand. */
const SUBNET_MASK = 19;

export interface TrainingNetworkProps {
  /** Prefix of names, `slipway-research`. */
  readonly prefix: string;
  /**
   * vpc-locked: isolated subnets and endpoints, no way to the internet; vpc-nat: private subnets behind one NAT gateway.
   * @default 'vpc-locked'
   */
  readonly mode?: 'vpc-locked' | 'vpc-nat';
  /** Zone ids (usw2-az2). @default - all zones of the Region, as the CDK looks them up for the stack */
  readonly availabilityZoneIds?: readonly string[];
  /** Buckets of other accounts that jobs may reach through the S3 endpoint, as ARNs. @default - none */
  readonly foreignBucketArns?: readonly string[];
  /** Whether `requirements` come from CodeArtifact, which needs two more endpoints. @default false */
  readonly usesCodeArtifact?: boolean;
  /** Whether remote debug sessions are allowed, which need the Session Manager endpoint. @default false */
  readonly allowsRemoteDebug?: boolean;
}

/**
 * VPC for training jobs. Subnets lie in all zones, since GPU capacity sits in few and subnets decide where a job may land.
 * `vpc-locked` costs five interface endpoints in each zone (about 7 USD a month each) and flow logs.
 *
 * ```ts
 * const network = new TrainingNetwork(this, 'Network', { prefix: 'slipway-research' });
 * ```
 */
export class TrainingNetwork extends Construct {
  public readonly vpc: ec2.Vpc;
  /** Group of every job: all traffic to and from itself, as EFA needs, and HTTPS out. */
  public readonly securityGroup: ec2.SecurityGroup;
  public readonly subnetIds: string[];
  public readonly securityGroupIds: string[];
  /** Subnets with their zone ids; undefined where the embedded AWS cannot tell. */
  public readonly subnets?: { id: string; zoneId: string }[];

  constructor(scope: Construct, id: string, props: TrainingNetworkProps) {
    super(scope, id);
    const mode = props.mode ?? 'vpc-locked';
    const sandbox = isSandbox(this);
    this.vpc = this.makeVpc(mode, props.availabilityZoneIds, sandbox);
    this.securityGroup = this.makeSecurityGroup(props.prefix, sandbox);
    this.addEndpoints(mode, props);
    if (!sandbox) this.addFlowLog();
    const chosen = mode === 'vpc-locked' ? this.vpc.isolatedSubnets : this.vpc.privateSubnets;
    this.pinZones(chosen, props.availabilityZoneIds);
    this.subnetIds = chosen.map((subnet) => subnet.subnetId);
    this.securityGroupIds = [this.securityGroup.securityGroupId];
    if (!sandbox) {
      this.subnets = chosen.map((subnet) => ({
        id: subnet.subnetId,
        zoneId: cfnSubnet(subnet).attrAvailabilityZoneId,
      }));
    }
  }

  private makeVpc(mode: string, zoneIds: readonly string[] | undefined, sandbox: boolean): ec2.Vpc {
    const isLocked = mode === 'vpc-locked';
    const region = Stack.of(this).region;
    const jobs = {
      name: 'training',
      cidrMask: SUBNET_MASK,
      subnetType: isLocked ? ec2.SubnetType.PRIVATE_ISOLATED : ec2.SubnetType.PRIVATE_WITH_EGRESS,
    };
    const edge = { name: 'edge', cidrMask: 28, subnetType: ec2.SubnetType.PUBLIC, mapPublicIpOnLaunch: false };
    return new ec2.Vpc(this, 'Vpc', {
      ipAddresses: ec2.IpAddresses.cidr(VPC_CIDR),
      availabilityZones: zonesOf(region, zoneIds, sandbox),
      maxAzs: zoneIds || sandbox ? undefined : 99,
      natGateways: isLocked || sandbox ? 0 : 1,
      restrictDefaultSecurityGroup: !sandbox,
      subnetConfiguration: isLocked ? [jobs] : [jobs, edge],
    });
  }

  /**
   * EFA asks for rules that name the group itself, both ways: an address range does not count. A group that allows all
   * outbound traffic drops its rule for itself without a word, so that it is off here.
   */
  private makeSecurityGroup(prefix: string, sandbox: boolean): ec2.SecurityGroup {
    const group = new ec2.SecurityGroup(this, 'JobGroup', {
      vpc: this.vpc,
      description: `${prefix}: training jobs`,
      allowAllOutbound: false,
    });
    if (!sandbox) group.connections.allowInternally(ec2.Port.allTraffic(), 'EFA, NCCL and Lustre within a job');
    // Isolated subnets have no route but the endpoints; the id of the S3 prefix list would need a look-up.
    group.addEgressRule(ec2.Peer.anyIpv4(), ec2.Port.tcp(443), 'S3 and interface endpoints');
    return group;
  }

  private addEndpoints(mode: string, props: TrainingNetworkProps): void {
    const s3 = this.vpc.addGatewayEndpoint('S3', { service: ec2.GatewayVpcEndpointAwsService.S3 });
    for (const statement of s3EndpointPolicy(Stack.of(this), props.foreignBucketArns ?? [])) s3.addToPolicy(statement);
    if (mode !== 'vpc-locked') return;
    const group = new ec2.SecurityGroup(this, 'EndpointGroup', {
      vpc: this.vpc,
      description: `${props.prefix}: interface endpoints`,
      allowAllOutbound: false,
    });
    group.addIngressRule(ec2.Peer.ipv4(VPC_CIDR), ec2.Port.tcp(443), 'HTTPS from jobs');
    for (const [name, service] of Object.entries(endpointServices(props))) {
      const endpoint = this.vpc.addInterfaceEndpoint(name, { service, open: false, securityGroups: [group] });
      for (const statement of interfaceEndpointPolicy(Stack.of(this), name)) endpoint.addToPolicy(statement);
    }
  }

  private addFlowLog(): void {
    const logGroup = new logs.LogGroup(this, 'FlowLogs', { retention: logs.RetentionDays.THREE_MONTHS });
    this.vpc.addFlowLog('FlowLog', {
      destination: ec2.FlowLogDestination.toCloudWatchLogs(logGroup),
      trafficType: ec2.FlowLogTrafficType.REJECT,
    });
  }

  /** Subnets by zone id: names of zones differ between accounts, ids do not. */
  private pinZones(subnets: readonly ec2.ISubnet[], zoneIds: readonly string[] | undefined): void {
    if (!zoneIds || isSandbox(this)) return;
    const all = [...subnets, ...this.vpc.publicSubnets];
    all.forEach((subnet, i) => {
      const resource = cfnSubnet(subnet);
      resource.availabilityZone = undefined;
      resource.availabilityZoneId = zoneIds[i % zoneIds.length];
    });
  }
}

/** Zone names for the VPC; with ids given they only count the subnets, and the ids are put in afterwards. */
function zonesOf(region: string, zoneIds: readonly string[] | undefined, sandbox: boolean): string[] | undefined {
  if (sandbox) return [`${region}a`, `${region}b`];
  return zoneIds?.map((_, i) => Fn.select(i, Fn.getAzs()));
}

function cfnSubnet(subnet: ec2.ISubnet): ec2.CfnSubnet {
  return subnet.node.defaultChild as ec2.CfnSubnet;
}
