import { Fn, RemovalPolicy, Stack, Tags } from 'aws-cdk-lib';
import * as ec2 from 'aws-cdk-lib/aws-ec2';
import type * as kms from 'aws-cdk-lib/aws-kms';
import * as logs from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import { DEFAULT_VPC_CIDR, type PlannedSubnets, subnetPlan } from '../../core/catalog/subnet-plan';
import { isDeployed } from '../embedded-aws';
import { endpointServices, interfaceEndpointPolicy, s3EndpointPolicy } from './network-endpoints';

/**
 * Availability Zones of the Region of a stack. The look-up of the CDK also returns the Local Zones and Wavelength Zones that the account has
 * opted in to (us-west-2-lax-1a), in which there are no training instances.
 */
export const regionalZones = ({ availabilityZones, region }: Stack): string[] =>
  availabilityZones.filter((zone) => !zone.startsWith(`${region}-`));

/**
 * Subnets of the jobs, one per zone, below the VPC and with the names that the CDK would use. The CDK's VPC numbers subnets and assigns
 * address ranges by the position of a zone in a list, so that adding or removing a zone would replace the subnets after it.
 */
function jobSubnets(vpc: ec2.Vpc, plan: readonly PlannedSubnets[], isLocked: boolean): ec2.PrivateSubnet[] {
  return plan.map(({ zone, number, cidr }) => {
    const subnet = new ec2.PrivateSubnet(vpc, `trainingSubnet${number}`, {
      ...placed(vpc, zone),
      cidrBlock: cidr,
      mapPublicIpOnLaunch: false,
    });
    return inZone(subnet, zone, 'training', isLocked ? 'Isolated' : 'Private');
  });
}

/** A public subnet for each zone, and one NAT gateway in the zone with the lowest number: adding a lower one moves it. */
function addNat(vpc: ec2.Vpc, plan: readonly PlannedSubnets[], jobs: readonly ec2.PrivateSubnet[]): void {
  const gateway = new ec2.CfnInternetGateway(vpc, 'IGW');
  const attachment = new ec2.CfnVPCGatewayAttachment(vpc, 'VPCGW', {
    internetGatewayId: gateway.ref,
    vpcId: vpc.vpcId,
  });
  Tags.of(gateway).add('Name', vpc.node.path);
  const edges = plan.map(({ zone, number, edgeCidr }) => {
    const edge = new ec2.PublicSubnet(vpc, `edgeSubnet${number}`, {
      ...placed(vpc, zone),
      cidrBlock: edgeCidr,
      mapPublicIpOnLaunch: false,
    });
    edge.addDefaultInternetRoute(gateway.ref, attachment);
    return inZone(edge, zone, 'edge', 'Public');
  });
  const nat = edges[0]?.addNatGateway();
  if (nat) for (const subnet of jobs) subnet.addDefaultNatRoute(nat.ref);
}

const isZoneId = (zone: string): boolean => /-az\d+$/.test(zone);

/** A subnet is placed by zone name or zone id; the construct requires a name, which `inZone` removes again. */
const placed = (vpc: ec2.Vpc, zone: string) => ({ vpcId: vpc.vpcId, availabilityZone: zone });

/** Places subnets by zone id if one is given: zone names differ between accounts, zone ids do not. */
function inZone<T extends ec2.Subnet>(subnet: T, zone: string, name: string, type: string): T {
  const resource = cfnSubnet(subnet);
  if (isZoneId(zone)) {
    resource.availabilityZone = undefined;
    resource.availabilityZoneId = zone;
  }
  const only = { includeResourceTypes: [ec2.CfnSubnet.CFN_RESOURCE_TYPE_NAME] };
  Tags.of(subnet).add('aws-cdk:subnet-name', name, only);
  Tags.of(subnet).add('aws-cdk:subnet-type', type, only);
  return subnet;
}

/** Where the outbound HTTPS of jobs goes, in the descriptions of their rules. */
const ENDPOINTS = 'S3 and interface endpoints';

export interface TrainingNetworkProps {
  /** Prefix of names, `slipway-research`. */
  readonly prefix: string;
  /**
   * vpc-locked: isolated subnets and endpoints, no internet access; vpc-nat: private subnets behind one NAT gateway. @default 'vpc-locked'
   */
  readonly mode?: 'vpc-locked' | 'vpc-nat';
  /** Address range of the VPC, /16 to /21; each zone gets an eighth. @default '10.64.0.0/16' */
  readonly cidr?: string;
  /**
   * Zone ids (usw2-az2). The CDK looks zones up nevertheless in a stack with an account, unless the stack overrides `availabilityZones`.
   * @default - all zones of the Region, as the CDK looks them up for the stack
   */
  readonly availabilityZoneIds?: readonly string[];
  /** ARNs of buckets of other accounts that jobs may access through the S3 endpoint. @default - none */
  readonly foreignBucketArns?: readonly string[];
  /** ARNs of MLflow tracking servers to which jobs log; a locked network gets an endpoint for them. @default - none */
  readonly mlflowServers?: readonly string[];
  /** Whether `requirements` are installed from CodeArtifact, which needs two more endpoints. @default false */
  readonly usesCodeArtifact?: boolean;
  /** Whether remote debug sessions are allowed, which need the Session Manager endpoint. @default false */
  readonly allowsRemoteDebug?: boolean;
  /**
   * Key of the flow logs, which are then deleted with the stack: that of an `OperationsKey`. @default - the default encryption of
   * CloudWatch Logs
   */
  readonly encryptionKey?: kms.IKey;
  /** Whether flow logs without a key of their own are retained when the stack is deleted. @default true */
  readonly retain?: boolean;
  /** Teams whose jobs get a security group of their own. @default - none: all jobs use `securityGroup` */
  readonly teams?: readonly string[];
  /** Services besides S3 that scripts call, by the name of their endpoint, such as `sts`. @default - none */
  readonly endpoints?: readonly string[];
}

/**
 * VPC for training jobs. There are subnets in all zones, because few zones have GPU capacity and a job can only be placed where there is a
 * subnet; the address range of a zone depends only on that zone. SageMaker itself pulls the image and sends logs and metrics, so a locked
 * network needs only the S3 gateway endpoint, which is free, and the interface endpoints that are configured.
 *
 * ```ts
 * const network = new TrainingNetwork(this, 'Network', { prefix: 'slipway-research' });
 * ```
 */
export class TrainingNetwork extends Construct {
  /** VPC of jobs. */
  public readonly vpc: ec2.Vpc;
  /**
   * Security group of file systems, and of jobs of teams without their own: all traffic to and from itself, which EFA needs, and outbound
   * HTTPS.
   */
  public readonly securityGroup: ec2.SecurityGroup;
  /** Ids of the security groups of teams: as `securityGroup`, and all traffic to and from that one. */
  public readonly teamGroupIds: Readonly<Record<string, string>>;
  /** Subnets of jobs, one per zone. */
  public readonly subnetIds: string[];
  /** The subnets, by zone as it was given. */
  public readonly subnetOfZone: Readonly<Record<string, ec2.ISubnet>>;
  /** Security groups of file systems, and of jobs of teams without their own: only `securityGroup`. */
  public readonly securityGroupIds: string[];
  /** Subnets with their zone ids. */
  public readonly subnets: { id: string; zoneId: string }[];

  constructor(scope: Construct, id: string, props: TrainingNetworkProps) {
    super(scope, id);
    const isLocked = (props.mode ?? 'vpc-locked') === 'vpc-locked';
    const { zones, vpcId } = this.placeOf(props);
    const cidr = props.cidr ?? DEFAULT_VPC_CIDR;
    const plan = subnetPlan(zones, cidr);
    this.vpc = this.makeVpc(vpcId, cidr);
    const hasNat = !isLocked && isDeployed(this, 'natGateway');
    const chosen = jobSubnets(this.vpc, plan, !hasNat);
    if (hasNat) addNat(this.vpc, plan, chosen);
    this.securityGroup = this.makeSecurityGroup(props.prefix);
    this.teamGroupIds = Object.fromEntries(
      (props.teams ?? []).map((team) => [team, this.makeTeamGroup(props.prefix, team)]),
    );
    this.addEndpoints(isLocked, chosen, props);
    if (isDeployed(this, 'flowLogs')) this.addFlowLog(props.retain ?? true, props.encryptionKey);
    this.subnetIds = chosen.map((subnet) => subnet.subnetId);
    this.subnetOfZone = Object.fromEntries(
      plan.flatMap(({ zone }, i) => (chosen[i] ? [[zone, chosen[i]] as const] : [])),
    );
    this.securityGroupIds = [this.securityGroup.securityGroupId];
    this.subnets = chosen.map((subnet) => ({ id: subnet.subnetId, zoneId: cfnSubnet(subnet).attrAvailabilityZoneId }));
  }

  /**
   * Zones, and the construct id of the VPC. Subnets by zone id are in another VPC than subnets by zone name: both use the same address
   * ranges, and a subnet cannot be changed from one to the other, so a change between them creates a new VPC beside the old one.
   */
  private placeOf(props: TrainingNetworkProps): { zones: readonly string[]; vpcId: string } {
    const { region } = Stack.of(this);
    const { availabilityZoneIds: ids } = props;
    const all = () => (isDeployed(this, 'zones') ? regionalZones(Stack.of(this)) : [`${region}a`, `${region}b`]);
    return { zones: ids ?? all(), vpcId: ids ? 'VpcByZone' : 'Vpc' };
  }

  private makeVpc(id: string, cidr: string): ec2.Vpc {
    return new ec2.Vpc(this, id, {
      ipAddresses: ec2.IpAddresses.cidr(cidr),
      // The subnets are created separately. The construct looks up the zones of its stack all the same: see EnvironmentStack.
      availabilityZones: [Fn.select(0, Fn.getAzs())],
      subnetConfiguration: [],
      natGateways: 0,
      restrictDefaultSecurityGroup: isDeployed(this, 'defaultGroup'),
    });
  }

  /**
   * EFA requires rules that name the security group itself, in both directions: an address range is not sufficient. The construct silently
   * drops a group's rule for itself if the group allows all outbound traffic, so that is disabled here.
   */
  private makeSecurityGroup(prefix: string): ec2.SecurityGroup {
    const group = new ec2.SecurityGroup(this, 'JobGroup', {
      vpc: this.vpc,
      description: `${prefix}: training jobs`,
      allowAllOutbound: false,
    });
    if (isDeployed(this, 'rulesForItself'))
      group.connections.allowInternally(ec2.Port.allTraffic(), 'EFA, NCCL and Lustre within a job');
    // Isolated subnets have no routes except to endpoints; using the id of the S3 prefix list would need a look-up.
    group.addEgressRule(ec2.Peer.anyIpv4(), ec2.Port.tcp(443), ENDPOINTS);
    return group;
  }

  /**
   * A group that no host of another team can reach. Its rules for `securityGroup` are resources of their own, because that group may be
   * retained without this one.
   */
  private makeTeamGroup(prefix: string, team: string): string {
    const shared = this.securityGroup.securityGroupId;
    const group = new ec2.CfnSecurityGroup(this, `JobGroup-${team}`, {
      vpcId: this.vpc.vpcId,
      groupDescription: `${prefix}: training jobs of team ${team}`,
      securityGroupIngress: [{ ipProtocol: '-1', sourceSecurityGroupId: shared, description: 'From file systems' }],
      securityGroupEgress: [
        { ipProtocol: 'tcp', fromPort: 443, toPort: 443, cidrIp: '0.0.0.0/0', description: ENDPOINTS },
        { ipProtocol: '-1', destinationSecurityGroupId: shared, description: 'To file systems' },
      ],
    });
    const own = group.attrGroupId;
    if (!isDeployed(this, 'rulesForItself')) return own;
    for (const [name, groupId] of Object.entries({ Own: own, Shared: shared })) {
      const rule = { groupId, ipProtocol: '-1' };
      new ec2.CfnSecurityGroupIngress(this, `${name}From-${team}`, { ...rule, sourceSecurityGroupId: own });
      new ec2.CfnSecurityGroupEgress(this, `${name}To-${team}`, { ...rule, destinationSecurityGroupId: own });
    }
    return own;
  }

  private addEndpoints(isLocked: boolean, subnets: readonly ec2.ISubnet[], props: TrainingNetworkProps): void {
    const selected = { subnets: [...subnets] };
    const s3 = this.vpc.addGatewayEndpoint('S3', {
      service: ec2.GatewayVpcEndpointAwsService.S3,
      subnets: [selected],
    });
    for (const statement of s3EndpointPolicy(Stack.of(this), props.foreignBucketArns ?? [])) s3.addToPolicy(statement);
    const services = Object.entries(endpointServices(props));
    if (!isLocked || services.length === 0) return;
    const group = new ec2.SecurityGroup(this, 'EndpointGroup', {
      vpc: this.vpc,
      description: `${props.prefix}: interface endpoints`,
      allowAllOutbound: false,
    });
    group.addIngressRule(ec2.Peer.ipv4(props.cidr ?? DEFAULT_VPC_CIDR), ec2.Port.tcp(443), 'HTTPS from jobs');
    for (const [name, service] of services) {
      const options = { service, open: false, securityGroups: [group], subnets: selected };
      const endpoint = this.vpc.addInterfaceEndpoint(name, options);
      const policy = interfaceEndpointPolicy(Stack.of(this), name, props.mlflowServers);
      for (const statement of policy) endpoint.addToPolicy(statement);
    }
  }

  private addFlowLog(retain: boolean, encryptionKey?: kms.IKey): void {
    const logGroup = new logs.LogGroup(this, 'FlowLogs', {
      retention: logs.RetentionDays.THREE_MONTHS,
      // A log group is unreadable without its key, so a log group with a key of the stack is deleted with the stack.
      removalPolicy: retain && !encryptionKey ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
      encryptionKey,
    });
    this.vpc.addFlowLog('FlowLog', {
      destination: ec2.FlowLogDestination.toCloudWatchLogs(logGroup),
      trafficType: ec2.FlowLogTrafficType.REJECT,
    });
  }
}

const cfnSubnet = (subnet: ec2.ISubnet) => subnet.node.defaultChild as ec2.CfnSubnet;
