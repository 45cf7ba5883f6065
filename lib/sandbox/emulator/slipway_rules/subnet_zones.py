"""A subnet returns the id of its Availability Zone.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-subnet.html: Fn::GetAtt returns AvailabilityZone
and AvailabilityZoneId. MiniStack places a subnet by the id of a zone, but returns only the name.
"""

from ministack.services import ec2
from ministack.services.cloudformation import provisioners

from slipway_rules.hooks import wrap


def with_zone_id(original, *arguments, **more):
    physical_id, attributes = original(*arguments, **more)
    subnet = ec2._subnets.get(physical_id, {})
    return physical_id, {**attributes, "AvailabilityZoneId": subnet.get("AvailabilityZoneId", "")}


def install() -> None:
    for name in ("_ec2_subnet_create", "_ec2_subnet_update"):
        wrap(provisioners, name, with_zone_id)
