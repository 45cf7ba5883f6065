"""Training plans on offer and one's own, as `slipway plan --by` looks for them. Nothing is bought."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from ._service_errors import service_error

#: Sizes that plans are sold in (https://docs.aws.amazon.com/sagemaker/latest/dg/reserve-capacity-with-training-plans.html).
_SIZES = (1, 2, 4, 8, 16, 32, 64)
#: Days that offers are asked for: the service matches a duration exactly, in days.
_DAYS_TRIED = 3
_MAX_DAYS = 182


def training_plans(client: Any, needs: Mapping[str, Any], now: datetime.datetime, by: datetime.datetime) -> list[dict[str, Any]]:
    """Own plans that have not ended, then those on offer that end by the date, as control takes them."""
    try:
        return [*_own(client, str(needs["instanceType"])), *_offered(client, needs, now, by)]
    except (BotoCoreError, ClientError) as error:
        raise service_error("looking for training plans", error) from error


def _offered(client: Any, needs: Mapping[str, Any], now: datetime.datetime, by: datetime.datetime) -> list[dict[str, Any]]:
    size = next((count for count in _SIZES if count >= needs["instances"]), None)
    first = max(1, math.ceil(needs["hours"] / 24))
    if size is None or first > _MAX_DAYS:
        return []
    found: dict[str, dict[str, Any]] = {}
    for day in range(first, first + _DAYS_TRIED):
        answer = client.search_training_plan_offerings(
            InstanceType=needs["instanceType"],
            InstanceCount=size,
            DurationHours=24 * day,
            StartTimeAfter=now,
            EndTimeBefore=by,
            TargetResources=["training-job"],
        )
        for offer in answer.get("TrainingPlanOfferings", []):
            found[offer["TrainingPlanOfferingId"]] = _offered_plan(offer)
    return list(found.values())


def _offered_plan(offer: Mapping[str, Any]) -> dict[str, Any]:
    parts = offer.get("ReservedCapacityOfferings", [])
    dollars = offer.get("CurrencyCode", "USD") == "USD" and "UpfrontFee" in offer
    return {
        "kind": "training-plan-on-offer",
        "id": offer["TrainingPlanOfferingId"],
        "blocks": _blocks(parts),
        "instances": min((part.get("InstanceCount", 0) for part in parts), default=0),
        "usd": float(offer["UpfrontFee"]) if dollars else None,
        "note": "paid upfront" if dollars else f"{offer.get('UpfrontFee')} {offer.get('CurrencyCode')}",
    }


def _own(client: Any, instance_type: str) -> list[dict[str, Any]]:
    pages = client.get_paginator("list_training_plans").paginate()
    plans = [plan for page in pages for plan in page.get("TrainingPlanSummaries", [])]
    return [
        _own_plan(plan)
        for plan in plans
        if plan.get("Status") in ("Active", "Scheduled")
        and "training-job" in plan.get("TargetResources", [])
        and any(part.get("InstanceType") == instance_type for part in plan.get("ReservedCapacitySummaries", []))
    ]


def _own_plan(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Of a plan that has not begun yet, all instances are still to be had."""
    parts = [part for part in plan.get("ReservedCapacitySummaries", []) if part.get("StartTime")]
    count = "TotalInstanceCount" if plan["Status"] == "Scheduled" else "AvailableInstanceCount"
    return {
        "kind": "own-training-plan",
        "id": plan["TrainingPlanArn"],
        "blocks": _blocks(parts or [plan]),
        "instances": plan.get(count, 0),
        "usd": 0,
        "note": f"{plan['TrainingPlanName']}, already paid",
    }


def _blocks(parts: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Parts without both times are ignored."""
    spans = sorted((part["StartTime"], part["EndTime"]) for part in parts if part.get("StartTime") and part.get("EndTime"))
    return [{"from": iso(start), "to": iso(end)} for start, end in spans]


def iso(at: datetime.datetime) -> str:
    """In UTC with milliseconds, as control takes a time."""
    return at.astimezone(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
