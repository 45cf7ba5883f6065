"""Rules of AWS that MiniStack lacks, one module each. Every rule cites the page of the AWS documentation that it follows.

A rule replaces functions of the pinned MiniStack by name (hooks.py). If a function no longer exists the start fails, so that no rule is
lost when the version changes. All rules apply unless the sandbox is told to disable some.
"""

from importlib import import_module

RULES = {
    name: import_module(f"slipway_rules.{name.replace('-', '_')}")
    for name in (
        "action-resources",
        "answers",
        "bucket-not-empty",
        "builds",
        "custom-resource-answers",
        "endpoint-policies",
        "log-group-keys",
        "name-collisions",
        "replaced-rollbacks",
        "service-principals",
        "service-role",
        "size-limits",
        "subnet-ranges",
        "subnet-zones",
    )
}


def install(off: str) -> None:
    """Applies every rule except those in `off`: names separated by commas, or `all`."""
    left_out = set(RULES) if off == "all" else {name for name in off.split(",") if name}
    if unknown := left_out - set(RULES):
        raise SystemExit(f"rulesOff: must name rules, got {', '.join(sorted(unknown))}; use all or some of {', '.join(RULES)}")
    for name, rule in RULES.items():
        if name not in left_out:
            rule.install()
