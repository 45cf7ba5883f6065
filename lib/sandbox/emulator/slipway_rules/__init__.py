"""Rules of AWS that MiniStack lacks, one module each. Every rule cites the page of the AWS documentation that it follows.

A rule replaces functions of the pinned MiniStack by name (hooks.py). If a function no longer exists the start fails, so that no rule is
lost when the version changes. All rules apply unless the sandbox is told to disable some.
"""

from slipway_rules import (
    action_resources,
    answers,
    bucket_not_empty,
    builds,
    custom_resource_answers,
    endpoint_policies,
    log_group_keys,
    name_collisions,
    replaced_rollbacks,
    service_principals,
    service_role,
    size_limits,
    subnet_ranges,
    subnet_zones,
)

RULES = {
    "action-resources": action_resources,
    "answers": answers,
    "bucket-not-empty": bucket_not_empty,
    "builds": builds,
    "custom-resource-answers": custom_resource_answers,
    "endpoint-policies": endpoint_policies,
    "log-group-keys": log_group_keys,
    "name-collisions": name_collisions,
    "replaced-rollbacks": replaced_rollbacks,
    "service-principals": service_principals,
    "service-role": service_role,
    "size-limits": size_limits,
    "subnet-ranges": subnet_ranges,
    "subnet-zones": subnet_zones,
}


def install(off: str) -> None:
    """Applies every rule except those in `off`: names separated by commas, or `all`."""
    left_out = set(RULES) if off == "all" else {name for name in off.split(",") if name}
    if unknown := left_out - set(RULES):
        raise SystemExit(f"rulesOff: must name rules, got {', '.join(sorted(unknown))}; use all or some of {', '.join(RULES)}")
    for name, rule in RULES.items():
        if name not in left_out:
            rule.install()
