"""Every English sentence of what an admin does on these pages: forms, the question before, and what was done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_DONE: Mapping[str, str] = {
    "freeze": "Frozen. New calls are refused; calls in progress are settled as always.",
    "thaw": "The freeze is lifted. New calls are decided by the budgets again.",
    "revoke": "Revoked. New calls that carry it are refused.",
    "restore": "Restored. New calls that carry it are decided by the budgets again.",
    "adjust": "Adjusted. It is in what was spent from now on.",
    "revoke-key": "The key is revoked. It may still settle and release what it held.",
}


@dataclass(frozen=True, slots=True)
class ActWords:
    heading: str = "Act"
    on_record: str = "Whatever is done here stands on the record, with who did it and why."
    reason: str = "Reason"
    reason_optional: str = "Reason (may stay empty)"
    reason_hint: str = "It is shown to whoever is refused."
    sure: str = "Are you sure?"
    cancel: str = "Cancel"
    fields: Mapping[str, str] = field(
        default_factory=lambda: {
            "scope": "Scope", "reason": "Reason", "until": "Until", "label": "Label", "value": "Value",
            "budget": "Budget", "period": "Period", "amount": "Amount", "hold": "Hold", "id": "Key",
        }
    )  # fmt: skip

    freeze: str = "Freeze"
    freeze_title: str = "Freeze {scope}?"
    freeze_says: str = "New calls in this scope are refused at once. Calls in progress go on and are settled as always."
    freeze_do: str = "Freeze it"
    scope: str = "What"
    scope_hint: str = "all, a budget\u2019s name, or a label such as user=alice"
    lasts: str = "For how long"
    until_lifted: str = "until somebody lifts it"
    hours_one: str = "1 hour"
    hours: str = "{n} hours"

    thaw: str = "Lift"
    thaw_title: str = "Lift the freeze of {scope}?"
    thaw_says: str = "New calls in this scope are decided by the budgets again, at once."
    thaw_do: str = "Lift the freeze"

    restore: str = "Restore"
    restore_title: str = "Restore {label} {value}?"
    restore_says: str = (
        "New calls that carry it are decided by the budgets again, at once. A guard begins to count anew."
    )
    restore_key_says: str = "A key that was itself revoked stays so: make another."
    restore_do: str = "Restore it"

    revoke: str = "Revoke"
    revoke_title: str = "Revoke {label} {value}?"
    revoke_says: str = (
        "New calls that carry it are refused at once, until it is restored. Calls in progress are settled."
    )
    revoke_do: str = "Revoke it"
    label: str = "Label"
    label_hint: str = "user, model, or any label that calls carry"
    value: str = "Value"

    adjust: str = "Adjust"
    adjust_title: str = "Adjust {budget} in {period}?"
    adjust_says: str = "This much is added to what was spent, or taken off where it begins with a minus."
    adjust_do: str = "Adjust it"
    amount: str = "Amount in {unit}"
    amount_hint: str = "such as 0.25 or -0.25"

    revoke_key_title: str = "Revoke the key {id}?"
    revoke_key_says: str = (
        "It ends for good: it holds nothing new from now on. It may still settle and release what it held."
    )
    revoke_key_do: str = "Revoke the key"

    # keys
    keys: str = "Keys"
    keys_lead: str = "A key is shown once, when it is made. Only its hash is kept."
    new_key: str = "New key"
    make: str = "Make the key"
    role: str = "Role"
    roles: Mapping[str, str] = field(
        default_factory=lambda: {
            "spend": "spend: holds and settles, guarded calls", "observe": "observe: the provider\u2019s figures",
            "audit": "audit: looks at everything", "admin": "admin: everything",
        }
    )  # fmt: skip
    user: str = "User"
    user_hint: str = "whose calls these are; may stay empty"
    note: str = "Note"
    expires: str = "Ends"
    never: str = "never"
    days_one: str = "after 1 day"
    days: str = "after {n} days"
    names_user: str = "Its callers name the user themselves (an app\u2019s own server)"
    made: str = "The new key"
    made_once: str = "Copy it now: it is not shown again, and nobody can look it up."
    made_before: str = (
        "This form was sent before. If a key was made by it, it is in the list below, and not shown again."
    )
    all_keys: str = "All keys"
    keys_caption: str = "All keys, newest first"
    no_keys: str = "No key was made yet. The admin key of this wallet is in DATA/admin.key."
    key: str = "Key"
    whose: str = "Whose"
    state: str = "State"
    states: Mapping[str, str] = field(
        default_factory=lambda: {"active": "active", "revoked": "revoked", "expired": "expired"}
    )
    made_at: str = "Made"
    made_by: str = "{at} by {by}"
    ends: str = "Ends"
    act: str = "Act"
    replaces: str = "replaces {id}"

    done: Mapping[str, str] = field(default_factory=lambda: _DONE)


ACTS: Final = ActWords()
