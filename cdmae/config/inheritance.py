"""Values that encoders inherit from other encoders: the start, or all values for a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdmae.config import checks
from cdmae.config.reading import mapping
from cdmae.fields import Keys, refusal, show, suggestion

BEFORE = ("after", "snapshot_of")  # the keys that name another encoder
# the settings that a snapshot may set itself
OF_SNAPSHOT = ("snapshot_of", "take_step")


def inherited(encoders: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Add inherited settings to each encoder: the start of `after`, or all settings of a snapshot.

    Raises `InputError` if the earlier encoder does not exist or needs the encoder itself, and if a
    snapshot sets more than its step.
    """
    before: dict[str, list[str]] = {}
    for name, entry in encoders.items():
        before[name] = []
        for key in BEFORE:
            other = mapping(entry).get(key)
            if isinstance(other, str) and other:
                before[name].append(other)
                if other not in encoders:
                    words = f" is {show(other)}; {suggestion(other, encoders)}"
                    raise refusal(("encoders", name, key), words)
    checks.check_cycles("encoders", before)

    def whole(name: str) -> Any:
        entry = encoders[name]
        if not before[name]:
            return entry
        if entry.get("snapshot_of"):
            source = mapping(whole(entry["snapshot_of"]))
            return _snapshot(entry, source, {**defaults, **source}, ("encoders", name))
        start = mapping(whole(entry["after"])).get("start")
        return {"start": start, **entry} if start else entry

    return {name: whole(name) for name in encoders}


def _snapshot(
    entry: Mapping[str, Any], source: Mapping[str, Any], whole: Mapping[str, Any], keys: Keys
) -> dict[str, Any]:
    """Combine the values of a snapshot's encoder, `source`, with the snapshot's own values.

    whole: the values of the encoder, including the defaults.
    """
    name = entry["snapshot_of"]
    if source.get("snapshot_of"):
        words = f" is {name}, a snapshot itself; expected {source['snapshot_of']}"
        raise refusal((*keys, "snapshot_of"), words)
    if whole.get("objective") == "none":
        words = f" is {name}, which is not pre-trained; expected an encoder that is"
        raise refusal((*keys, "snapshot_of"), words)
    for key in entry:
        if key not in OF_SNAPSHOT and entry[key] != whole.get(key):
            words = (
                f" is {show(entry[key])}, but a snapshot inherits everything except take_step "
                f"from encoders.{name}; remove it"
            )
            raise refusal((*keys, key), words)
    if not entry.get("take_step"):
        words = f" is missing; set it to the step of encoders.{name} that this snapshot keeps"
        raise refusal((*keys, "take_step"), words)
    return {**source, **entry}
