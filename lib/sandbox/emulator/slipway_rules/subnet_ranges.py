"""A subnet must be within its VPC, between /16 and /28 in size, and must not overlap another subnet.

https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html and the codes InvalidSubnet.Range, InvalidSubnet.Conflict and
InvalidVpc.Range of https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html. In a replacement CloudFormation creates
the new subnet before it deletes the old one, so that a replacement with the same range fails too.
"""

import ipaddress

from ministack.services import ec2
from ministack.services.cloudformation import provisioners

from slipway_rules.hooks import failed, wrap

SMALLEST_PREFIX, LARGEST_PREFIX = 16, 28


def network_of(cidr: str) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(cidr)
    except ValueError:
        return None


def has_size(network: ipaddress.IPv4Network | None) -> bool:
    return network is not None and SMALLEST_PREFIX <= network.prefixlen <= LARGEST_PREFIX


def vpc_ranges(vpc: dict) -> list[ipaddress.IPv4Network]:
    associated = [item.get("CidrBlock", "") for item in vpc.get("CidrBlockAssociationSet", []) if isinstance(item, dict)]
    return [found for cidr in {vpc.get("CidrBlock", ""), *associated} if (found := network_of(cidr))]


def subnet_problem(vpc_id: str, cidr: str) -> tuple[str, str] | None:
    """(error code, message) for a range that AWS rejects in this VPC; None if it is accepted or the VPC is unknown."""
    vpc, network = ec2._vpcs.get(vpc_id), network_of(cidr)
    if vpc is None:
        return None
    if network is None or not has_size(network) or not any(network.subnet_of(block) for block in vpc_ranges(vpc)):
        return "InvalidSubnet.Range", f"The CIDR '{cidr}' is invalid."
    others = [network_of(subnet["CidrBlock"]) for subnet in ec2._subnets.values() if subnet["VpcId"] == vpc_id]
    if any(other and network.overlaps(other) for other in others):
        return "InvalidSubnet.Conflict", f"The CIDR '{cidr}' conflicts with another subnet"
    return None


def call_subnet(original, p):
    problem = subnet_problem(ec2._p(p, "VpcId"), ec2._p(p, "CidrBlock"))
    return ec2._error(*problem, 400) if problem else original(p)


def make_subnet(original, logical_id, props, stack_name):
    problem = subnet_problem(props.get("VpcId", ""), props.get("CidrBlock", ""))
    if problem:
        code, message = problem
        raise failed("AWS::EC2::Subnet", f"{message} (Service: Ec2, Status Code: 400, Error Code: {code})", "InvalidRequest")
    return original(logical_id, props, stack_name)


def call_vpc(original, p):
    cidr = ec2._p(p, "CidrBlock")
    return original(p) if has_size(network_of(cidr)) else ec2._error("InvalidVpc.Range", f"The CIDR '{cidr}' is invalid.", 400)


def make_vpc(original, logical_id, props, stack_name):
    cidr = props.get("CidrBlock", "")
    if not has_size(network_of(cidr)):
        reason = f"The CIDR '{cidr}' is invalid. (Service: Ec2, Status Code: 400, Error Code: InvalidVpc.Range)"
        raise failed("AWS::EC2::VPC", reason, "InvalidRequest")
    return original(logical_id, props, stack_name)


def install() -> None:
    wrap(ec2, "_create_subnet", call_subnet)
    wrap(ec2, "_create_vpc", call_vpc)
    wrap(provisioners, "_ec2_subnet_create", make_subnet)
    wrap(provisioners, "_ec2_vpc_create", make_vpc)
