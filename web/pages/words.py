"""Every English sentence of the operators' pages that several of them need. Nothing here is HTML.

`{name}` marks what is filled in; whoever fills a sentence in escapes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class FrameWords:
    """What stands around every operators' page, and what it says when it cannot be shown."""

    home: str = "Shared budget"
    budget: str = "Budget"
    days: str = "Days"
    keys: str = "Keys"
    pages: str = "Pages"
    signed_in: str = "Signed in as {name} ({role})"
    signed_in_admin: str = "Signed in with the admin key"
    sign_out: str = "Sign out"
    skip: str = "Skip to the content"
    titled: str = "{title} \u00b7 Common Purse"

    sign_in: str = "Sign in"
    sign_in_lead: str = (
        "These pages are for whoever runs this wallet. "
        "A key with the role audit may look, one with the role admin may act."
    )
    key: str = "Key"
    key_user: str = "operator"
    key_hint: str = (
        "`purse up` keeps the admin key in DATA/admin.key; `purse key new --role audit` makes one that only looks."
    )
    key_kept: str = (
        "The key is not kept: this browser gets a cookie that ends after {hours} hours, or when you sign out."
    )
    wrong_key: str = "This key is not known here."
    ended_key: str = "This key was revoked or has expired."
    no_right: str = "This key may not look at these pages. One with the role audit or admin may."

    not_found: str = "There is nothing at this address."
    not_allowed: str = "You may look here, but not do this: it takes a key with the role admin."
    no_answer: str = "The wallet does not answer now. Nothing was changed that it has not said; try again in a moment."
    old_form: str = (
        "This form was not sent from this page, or you have signed in again since. Go back, reload, and send it again."
    )
    back: str = "Back to the budget"


@dataclass(frozen=True, slots=True)
class TableWords:
    bars: str = "As a bar"


FRAME: Final = FrameWords()
TABLE: Final = TableWords()
