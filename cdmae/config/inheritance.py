"""Values that encoders inherit from other encoders: the start, or all values for a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdmae.config import checks
from cdmae.fields import Keys, refusal, show, suggestion

Entries = dict[str, dict[str, Any]]  # the values of a section's entries by name

BEFORE = ("after", "snapshot_of")  # the keys that name another encoder
# the settings that a snapshot may set itself
OF_SNAPSHOT = ("snapshot_of", "take_step")


def inherited(encoders: Mapping[str, Any], defaults: Mapping[str, Any]) -> Entries:
    """Add inherited settings to each encoder: the start of `after`, or all settings of a snapshot.

    Raises `InputError` if the earlier encoder does not exist or needs the encoder itself, and if a
    snapshot sets more than its step.
    """
    for key in BEFORE:
        if key in defaults:
            words = " cannot be a default: the first encoder has no earlier encoder"
            raise refusal(("pretraining", key), words)
    before = {name: _before(values) for name, values in encoders.items()}
    for name, needed in before.items():
        for key, other in needed.items():
            if other not in encoders:
                words = f" is {show(other)}; {suggestion(other, encoders)}"
                raise refusal(("encoders", name, key), words)
    checks.check_cycles("encoders", {name: list(own.values()) for name, own in before.items()})

    def whole(name: str) -> Any:
        values = encoders[name]
        source = before[name].get("snapshot_of")
        if source:
            first = before[source].get("snapshot_of")
            if first:
                words = f" is {source}, a snapshot itself; allowed: {first}"
                raise refusal(("encoders", name, "snapshot_of"), words)
            return _snapshot(values, mapping(whole(source)), defaults, ("encoders", name))
        earlier = before[name].get("after")
        start = mapping(whole(earlier)).get("start") if earlier else None
        return {"start": start, **values} if start else values

    return {name: whole(name) for name in encoders}


def mapping(values: Any) -> Mapping[str, Any]:
    """Return values that should be a mapping; empty if they are not, which is refused elsewhere."""
    return values if isinstance(values, Mapping) else {}


def _before(values: Any) -> dict[str, str]:
    """Return the names of the encoders that an encoder needs, by key."""
    own = mapping(values)
    return {key: own[key] for key in BEFORE if isinstance(own.get(key), str) and own[key]}


def _snapshot(
    values: dict[str, Any], source: Mapping[str, Any], defaults: Mapping[str, Any], keys: Keys
) -> dict[str, Any]:
    """Combine the values of the snapshot's encoder, `source`, with the snapshot's own `values`."""
    name = values["snapshot_of"]
    whole = {**defaults, **source}
    if whole.get("objective") == "none":
        words = f" is {name}, which is not pre-trained; allowed: an encoder that is"
        raise refusal((*keys, "snapshot_of"), words)
    for key in values:
        if key not in OF_SNAPSHOT and values[key] != whole.get(key):
            words = (
                f" is {show(values[key])}, but a snapshot inherits everything except take_step "
                f"from encoders.{name}; remove it"
            )
            raise refusal((*keys, key), words)
    if not values.get("take_step"):
        words = f" is missing; set it to the step of encoders.{name} that this snapshot keeps"
        raise refusal((*keys, "take_step"), words)
    return {**source, **values}
