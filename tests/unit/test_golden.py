"""The stored format, to the byte: what lies on a stream today must be read and written alike for ever.

What stands here is never edited. A new field has a default and a new example; the old ones stay as they are.
"""

from collections.abc import Sequence
from typing import get_args

import msgspec
import pytest

from engine.core.chain import GENESIS, link, open_sealed, seal
from engine.core.documents import (
    AlertBrief,
    AlertShown,
    Barred,
    Breakdown,
    BudgetStatus,
    DayTotals,
    Detail,
    Figure,
    Life,
    Noted,
    NotedAt,
    NotedPage,
    Point,
    Reading,
    Sealed,
    Series,
    Spent,
    Standing,
    Status,
    TriedTarget,
    WalletDay,
)
from engine.core.messages import (
    Adjust,
    Adjusted,
    Again,
    Answer,
    AnyAsk,
    AnyOutcome,
    ApplyPlan,
    AskMessage,
    Clock,
    Closed,
    Conflict,
    Cooling,
    Done,
    Dropped,
    Entry,
    Exhausted,
    Forgotten,
    Freeze,
    Frost,
    Frozen,
    Held,
    Hold,
    Invalid,
    KnownUse,
    Lapsed,
    Late,
    Left,
    Line,
    Loss,
    Observe,
    Observed,
    Option,
    Planned,
    Raised,
    Renew,
    Reply,
    Restore,
    Revoke,
    Revoked,
    Seal,
    SealedBudget,
    Settle,
    Settled,
    Stray,
    Thaw,
    Told,
    Unknown,
)
from engine.core.plan import Budget, Guard, Plan, Tier, Tiers, digest

LINE = Line("2026-11-30", 0, 86_400, 1_000, 600)
EACH = Line("2026-11-30", 0, 86_400, 80, -5, "alice")
LEFT = Left(1_000, 700)
DROPPED = Dropped("user", "2026-11-28", -5, "alice")
PLAN = Plan(
    budgets={
        "user": Budget(
            "jpy", 80, "month", "Asia/Tokyo", {"provider": "jev"}, "user", True, {"cohort=premium": 120}, "ours",
            "amounts", "a note", "https://example.org",
        )
    },
    units={"usd": 9, "jpy": 6},
    ttl_s=60, ttl_s_min=2, ttl_s_max=90, on_lapse="release", remember_s=7, zone="Asia/Tokyo",
)  # fmt: skip
TIERED = Plan(
    budgets={"jev": Budget("usd", 1_000)},
    units={"usd": 9},
    tzdata="2026.1",
    tiers=Tiers([Tier(500_000, 0), Tier(950_000, 2)], {"premium": 1_500_000}),
)
GUARDED = Plan(
    budgets={"jev": Budget("usd", 1_000)},
    units={"usd": 9},
    tzdata="2026.1",
    guards={
        "leaked": Guard("key", 12, 86_400, "revoke", distinct="origin"),
        "storm": Guard("user", 30, 60, "cool", 300),
    },
)
SHORT = BudgetStatus("jev", "usd", 9, "day", "UTC", "2026-11-30", 0, 86_400, 1_000, 1, 2, 3)
LONG = BudgetStatus(
    "neurons", "neurons", 6, "day", "UTC", "2026-11-30", 0, 86_400, 1_000, 1, 2, 3, "amounts", "cloudflare", "a note",
    "https://example.org", 700, Figure("cloudflare", 4, 900), 1, Reading("cloudflare", 30, 950, "silent"),
)  # fmt: skip

ASKS: list[AnyAsk] = [
    Hold(
        "k1/a",
        [Option({"usd": 400, "neurons": 0}, {"usd": 100}, 1, "full"), Option({"usd": 50})],
        5_000,
        {"user": "alice"},
        600,
        "release",
        "book",
    ),
    Hold("a", [Option({"usd": 400})], 5_000),
    Settle("a", {"usd": 300}),
    Settle("a", {"usd": 300, "neurons": 0}, final=False, estimated=True, held_at=900, labels={"user": "alice"}, id="s"),
    Settle("a", release=True, by=5_000),
    Renew("a", 1),
    Renew("a", 2, 600, {"usd": 500}, "r"),
    Observe("o", "neurons", "2026-11-30", 700, 900, "cloudflare"),
    Observe("o", "neurons", "2026-11-30", 700, 900, "cloudflare", "alice"),
    Adjust("j", "jev", "2026-11-30", -5, "invoice"),
    Adjust("j", "jev", "2026-11-30", 5, "invoice", "ops", "alice", "a"),
    Freeze("f", "all", "incident"),
    Freeze("f", "user=alice", "incident", "ops", 9_000),
    Thaw("t", "all"),
    Thaw("t", "all", "over", "ops"),
    Revoke("r", "key", "k1", "stolen"),
    Revoke("r", "key", "k1", "stolen", "ops"),
    Restore("u", "key", "k1"),
    Restore("u", "key", "k1", "found", "ops"),
    ApplyPlan("p", Plan(budgets={"jev": Budget("usd", 1_000)}, tzdata="2026.1"), ""),
    ApplyPlan("p", PLAN, "d1", "ops"),
    Loss("l", 101, 240, "a flipped bit"),
    Clock("k", 5_000, 9_000, "a dead battery"),
    Clock("k", 5_000, 9_000, "a dead battery", "ops"),
    Loss(
        "l",
        101,
        240,
        "a flipped bit",
        "ops",
        [KnownUse("jev", "2026-11-30", 5), KnownUse("u", "2026-11-30", 0, "a")],
        ["neurons"],
    ),
    ApplyPlan("p", TIERED, "d1"),
    ApplyPlan("p", GUARDED, "d1"),
    Hold("a", [Option({"usd": 400})], 5_000, memo='{"k":"é"}'),
    Settle("a", {"usd": 300}, memo="why"),
    Renew("a", 1, memo="why"),
]

STORED_ASKS = """
{"ask":"hold","id":"k1/a","options":[{"amounts":{"usd":400,"neurons":0},"least":{"usd":100},"grade":1,
 "name":"full"},{"amounts":{"usd":50}}],"by":5000,"labels":{"user":"alice"},"ttl_s":600,"on_lapse":"release",
 "price_book":"book"}

{"ask":"hold","id":"a","options":[{"amounts":{"usd":400}}],"by":5000}

{"ask":"settle","hold":"a","amounts":{"usd":300}}

{"ask":"settle","hold":"a","amounts":{"usd":300,"neurons":0},"final":false,"estimated":true,"held_at":900,
 "labels":{"user":"alice"},"id":"s"}

{"ask":"settle","hold":"a","release":true,"by":5000}

{"ask":"renew","hold":"a","n":1}

{"ask":"renew","hold":"a","n":2,"ttl_s":600,"amounts":{"usd":500},"id":"r"}

{"ask":"observe","id":"o","budget":"neurons","period":"2026-11-30","figure":700,"as_of":900,
 "source":"cloudflare"}

{"ask":"observe","id":"o","budget":"neurons","period":"2026-11-30","figure":700,"as_of":900,
 "source":"cloudflare","each":"alice"}

{"ask":"adjust","id":"j","budget":"jev","period":"2026-11-30","amount":-5,"reason":"invoice"}

{"ask":"adjust","id":"j","budget":"jev","period":"2026-11-30","amount":5,"reason":"invoice","by_whom":"ops",
 "each":"alice","hold":"a"}

{"ask":"freeze","id":"f","scope":"all","reason":"incident"}

{"ask":"freeze","id":"f","scope":"user=alice","reason":"incident","by_whom":"ops","until":9000}

{"ask":"thaw","id":"t","scope":"all"}

{"ask":"thaw","id":"t","scope":"all","reason":"over","by_whom":"ops"}

{"ask":"revoke","id":"r","label":"key","value":"k1","reason":"stolen"}

{"ask":"revoke","id":"r","label":"key","value":"k1","reason":"stolen","by_whom":"ops"}

{"ask":"restore","id":"u","label":"key","value":"k1"}

{"ask":"restore","id":"u","label":"key","value":"k1","reason":"found","by_whom":"ops"}

{"ask":"plan","id":"p","plan":{"budgets":{"jev":{"unit":"usd","limit":1000,"per":"day","zone":"UTC","where":{},
 "each":null,"required":false,"limit_for":{},"source":null,"public":"percent","note":"","link":""}},"rules":1,
 "units":{"usd":9,"neurons":6,"tokens":0,"jpy":6,"requests":0},"ttl_s":600,"ttl_s_min":1,"ttl_s_max":86400,
 "on_lapse":"charge","remember_s":172800,"zone":"UTC","tzdata":"2026.1"},"replaces":""}

{"ask":"plan","id":"p","plan":{"budgets":{"user":{"unit":"jpy","limit":80,"per":"month","zone":"Asia/Tokyo",
 "where":{"provider":"jev"},"each":"user","required":true,"limit_for":{"cohort=premium":120},"source":"ours",
 "public":"amounts","note":"a note","link":"https://example.org"}},"rules":1,"units":{"usd":9,"jpy":6},
 "ttl_s":60,"ttl_s_min":2,"ttl_s_max":90,"on_lapse":"release","remember_s":7,"zone":"Asia/Tokyo","tzdata":""},
 "replaces":"d1","by_whom":"ops"}

{"ask":"loss","id":"l","from_seq":101,"to_seq":240,"reason":"a flipped bit"}

{"ask":"clock","id":"k","from":5000,"to":9000,"reason":"a dead battery"}

{"ask":"clock","id":"k","from":5000,"to":9000,"reason":"a dead battery","by_whom":"ops"}

{"ask":"loss","id":"l","from_seq":101,"to_seq":240,"reason":"a flipped bit","by_whom":"ops",
 "used":[{"budget":"jev","period":"2026-11-30","used":5},{"budget":"u","period":"2026-11-30","used":0,"each":"a"}],
 "freeze":["neurons"]}

{"ask":"plan","id":"p","plan":{"budgets":{"jev":{"unit":"usd","limit":1000,"per":"day","zone":"UTC","where":{},
 "each":null,"required":false,"limit_for":{},"source":null,"public":"percent","note":"","link":""}},"rules":1,
 "units":{"usd":9},"ttl_s":600,"ttl_s_min":1,"ttl_s_max":86400,"on_lapse":"charge","remember_s":172800,"zone":"UTC",
 "tzdata":"2026.1","tiers":{"steps":[{"up_to":500000,"grade":0},{"up_to":950000,"grade":2}],
 "times":{"premium":1500000}}},"replaces":"d1"}

{"ask":"plan","id":"p","plan":{"budgets":{"jev":{"unit":"usd","limit":1000,"per":"day","zone":"UTC","where":{},
 "each":null,"required":false,"limit_for":{},"source":null,"public":"percent","note":"","link":""}},"rules":1,
 "units":{"usd":9},"ttl_s":600,"ttl_s_min":1,"ttl_s_max":86400,"on_lapse":"charge","remember_s":172800,"zone":"UTC",
 "tzdata":"2026.1","guards":{"leaked":{"label":"key","more_than":12,"within_s":86400,"action":"revoke","for_s":0,
 "distinct":"origin"},"storm":{"label":"user","more_than":30,"within_s":60,"action":"cool","for_s":300,
 "distinct":null}}},"replaces":"d1"}

{"ask":"hold","id":"a","options":[{"amounts":{"usd":400}}],"by":5000,"memo":"{\\"k\\":\\"é\\"}"}

{"ask":"settle","hold":"a","amounts":{"usd":300},"memo":"why"}

{"ask":"renew","hold":"a","n":1,"memo":"why"}
"""

OUTCOMES: list[AnyOutcome] = [
    Held("a", 0, {"usd": 400}, {"jev": LINE}, 1_000, 601_000),
    Held("a", 1, {"usd": 400}, {"user": EACH}, 1_000, 601_000, 2, 3),
    Held("a", 0, {"usd": 400}, {}, 1_000, 601_000, fired=["long-session"]),
    Exhausted("a", "busy", "jev", "usd", "2026-11-30", 1, 2, 3, 10, 4, 4, 86_400),
    Exhausted("a", "never", "user", "jpy", "2026-11-30", 1, 2, 3, 10, 4, 4, 86_400, "alice"),
    Frozen("a", "all", "incident"),
    Frozen("a", "all", "incident", 9_000),
    Cooling("a", "user", 9_000),
    Cooling("a", "user", 9_000, "alice", "retry-storm", ["retry-storm"]),
    Revoked("a", "key", "k1", "stolen"),
    Revoked("a", "key", "k1", "guard leaked-key", ["leaked-key"]),
    Late("a", 5_000),
    Closed("a", "settled", {"usd": 300}),
    Again("a", 7),
    Again("a", 7, "open", Late("a", 5_000)),
    Conflict("a", "options"),
    Conflict("a", "amounts", {"usd": 300}),
    Invalid("a", "by", "too far ahead"),
    Settled("a", "settled", {"usd": 300}),
    Settled(
        "a",
        "corrected",
        {"usd": 300, "jpy": 5},
        {"usd": 100},
        {"jev": LEFT},
        {"user": EACH},
        [DROPPED],
        ["late", "overrun", "unheld", "unreported", "corrected", "estimated"],
    ),
    Stray("a", "stray", {"usd": 300}, 1_000),
    Stray("a", "estimated", {"usd": 300}, 1_000, {"jev": LINE}, [DROPPED]),
    Forgotten("a"),
    Unknown("a"),
    Observed("o", 0, LINE),
    Adjusted("j", LINE),
    Adjusted("j", None, DROPPED),
    Planned("p", "d1"),
    Planned("p", "d1", ["jev"]),
    Done("f"),
    Done("l", [Raised("jev", 3, LINE), Raised("user", 0, EACH)], {"neurons": 86_400, "ever": None}),
    Exhausted("a", "tier", "jev", "usd", "2026-11-30", 6, 2, 0, 10, 2, 0, 86_400, tier=2, fired=["long"]),
]

STORED_OUTCOMES = """
{"outcome":"held","id":"a","option":0,"amounts":{"usd":400},"budgets":{"jev":{"period":"2026-11-30","start":0,
 "end":86400,"limit":1000,"remaining":600}},"at":1000,"expires_at":601000}

{"outcome":"held","id":"a","option":1,"amounts":{"usd":400},"budgets":{"user":{"period":"2026-11-30","start":0,
 "end":86400,"limit":80,"remaining":-5,"each":"alice"}},"at":1000,"expires_at":601000,"tier":2,"n":3}

{"outcome":"held","id":"a","option":0,"amounts":{"usd":400},"budgets":{},"at":1000,"expires_at":601000,
 "fired":["long-session"]}

{"outcome":"exhausted","id":"a","why":"busy","budget":"jev","unit":"usd","period":"2026-11-30","settled":1,
 "held":2,"extra":3,"limit":10,"remaining":4,"fits":4,"resets_at":86400}

{"outcome":"exhausted","id":"a","why":"never","budget":"user","unit":"jpy","period":"2026-11-30","settled":1,
 "held":2,"extra":3,"limit":10,"remaining":4,"fits":4,"resets_at":86400,"each":"alice"}

{"outcome":"frozen","id":"a","scope":"all","reason":"incident"}

{"outcome":"frozen","id":"a","scope":"all","reason":"incident","until":9000}

{"outcome":"cooling","id":"a","label":"user","until":9000}

{"outcome":"cooling","id":"a","label":"user","until":9000,"value":"alice","guard":"retry-storm","fired":["retry-storm"]}

{"outcome":"revoked","id":"a","label":"key","value":"k1","reason":"stolen"}

{"outcome":"revoked","id":"a","label":"key","value":"k1","reason":"guard leaked-key","fired":["leaked-key"]}

{"outcome":"late","id":"a","by":5000}

{"outcome":"closed","id":"a","state":"settled","charged":{"usd":300}}

{"outcome":"again","id":"a","first":7}

{"outcome":"again","id":"a","first":7,"state":"open","was":{"outcome":"late","id":"a","by":5000}}

{"outcome":"conflict","id":"a","field":"options"}

{"outcome":"conflict","id":"a","field":"amounts","charged":{"usd":300}}

{"outcome":"invalid","id":"a","field":"by","why":"too far ahead"}

{"outcome":"settled","id":"a","state":"settled","charged":{"usd":300}}

{"outcome":"settled","id":"a","state":"corrected","charged":{"usd":300,"jpy":5},"released":{"usd":100},
 "left":{"jev":{"limit":1000,"remaining":700}},"budgets":{"user":{"period":"2026-11-30","start":0,"end":86400,
 "limit":80,"remaining":-5,"each":"alice"}},"dropped":[{"budget":"user","period":"2026-11-28","amount":-5,
 "each":"alice"}],"flags":["late","overrun","unheld","unreported","corrected","estimated"]}

{"outcome":"stray","id":"a","state":"stray","charged":{"usd":300},"at":1000}

{"outcome":"stray","id":"a","state":"estimated","charged":{"usd":300},"at":1000,
 "budgets":{"jev":{"period":"2026-11-30","start":0,"end":86400,"limit":1000,"remaining":600}},
 "dropped":[{"budget":"user","period":"2026-11-28","amount":-5,"each":"alice"}]}

{"outcome":"forgotten","id":"a"}

{"outcome":"unknown","id":"a"}

{"outcome":"observed","id":"o","raised_by":0,"line":{"period":"2026-11-30","start":0,"end":86400,"limit":1000,
 "remaining":600}}

{"outcome":"adjusted","id":"j","line":{"period":"2026-11-30","start":0,"end":86400,"limit":1000,
 "remaining":600}}

{"outcome":"adjusted","id":"j","dropped":{"budget":"user","period":"2026-11-28","amount":-5,"each":"alice"}}

{"outcome":"planned","id":"p","digest":"d1"}

{"outcome":"planned","id":"p","digest":"d1","restarts":["jev"]}

{"outcome":"done","id":"f"}

{"outcome":"done","id":"l","raised":[{"budget":"jev","by":3,"line":{"period":"2026-11-30","start":0,"end":86400,
 "limit":1000,"remaining":600}},{"budget":"user","by":0,"line":{"period":"2026-11-30","start":0,"end":86400,
 "limit":80,"remaining":-5,"each":"alice"}}],"frozen":{"neurons":86400,"ever":null}}

{"outcome":"exhausted","id":"a","why":"tier","budget":"jev","unit":"usd","period":"2026-11-30","settled":6,
 "held":2,"extra":0,"limit":10,"remaining":2,"fits":0,"resets_at":86400,"tier":2,"fired":["long"]}
"""

CARRIED: list[msgspec.Struct] = [
    AskMessage(asks=[]),
    AskMessage(sender="_INBOX.x", asks=[Renew("a", 1)]),
    Lapsed("a", {"usd": 400}),
    Entry(7, 1_000),
    Entry(7, 1_000, [Lapsed("a", {"usd": 400})], [Done("f"), Late("a", 5_000)]),
    SealedBudget("2026-11-30", 1_000),
    Seal("2026-11-30", 86_400, 6),
    Entry(7, 86_400, sealed=[Seal("2026-11-30", 86_400, 6, 2, {"jev": SealedBudget("2026-11-30", 1_000, 1, 2, 3)})]),
    Seal(
        "2026-11-30", 86_400, 6, 2, {"jev": SealedBudget("2026-11-30", 1_000, 1, 2, 3), "b": SealedBudget("total", 9)}
    ),
    SealedBudget("2026-11-30", 1_000, 1, 2, 3),
    Told(engine="e1", upto=7, n=1, told=[Entry(7, 1_000)]),
    Answer("_INBOX.x", 7, 1_000, [Done("f")]),
    Reply(8, "00ff", [Answer("_INBOX.x", 7, 1_000, [Done("f")])]),
    Status("main", 8, 1_000, "", []),
    Status(
        "main",
        8,
        1_000,
        "d1",
        [SHORT, LONG],
        [Frost("all", "incident", 900), Frost("jev", "incident", 900, 9_000)],
        2,
        [AlertBrief("alert:percent:jev:2026-11-30:75", "75 % used", 950, delivered=True)],
        [Barred("user", "mallory", "leaked"), Barred("key", "k1", until=9_000, guard="storms")],
        3,
    ),
    AlertShown("alert:conflict::2026-11-30:1", "conflict", "odd", 950),
    AlertShown(
        "alert:percent:jev:2026-11-30:75",
        "percent",
        "75 % used",
        950,
        7,
        "jev",
        "2026-11-30",
        "75",
        "usd",
        {"used": "0.75"},
        {"ops": "sent"},
    ),
    TriedTarget("ops", delivered=True),
    TriedTarget("ops", delivered=False, why="it does not answer in time"),
    Life("a", "open", 7, 1_000, {"usd": 0}),
    Life("a", "open", 7, 1_000, {"usd": 0}, {"usd": 400}, {"usd": 5}, 601_000, {"jev": "2026-11-30"}),
    Life("a", "stray", 7, 1_000, {"usd": 5}, key="7f3qk2m5xa"),
    DayTotals("jev", "usd", 9, "2026-11-30", 0, 86_400, 8, 1_000),
    DayTotals("jev", "usd", 9, "2026-11-30", 0, 86_400, 8, 1_000, 1, 2, 3, 4, 5, 6, 7, {"busy": 1}, 8, 9, 10),
    Sealed("2026-11-30", 86_400, 7, 86_405),
    DayTotals(
        "jev",
        "usd",
        9,
        "2026-11-30",
        0,
        86_400,
        8,
        1_000,
        1,
        2,
        3,
        sealed=Sealed("2026-11-30", 86_400, 7, 86_405),
        settled_after_seal=-1,
        extra_after_seal=1,
    ),
    DayTotals(
        "jev",
        "usd",
        9,
        "2026-11-30",
        0,
        86_400,
        8,
        1_000,
        peak_at=11,
        open_holds=12,
        wasted=13,
        adjusted=-14,
        late=15,
        unheld=16,
        unreported=17,
        corrected=18,
        estimated=19,
        conflicts=20,
        unreconciled=-21,
        unreconciled_holds=22,
    ),
    Detail("jev", "2026-11-30", 8, 7, []),
    Detail(
        "jev",
        "2026-11-30",
        8,
        7,
        [Breakdown("model", [Spent("m", 4, 1, 2), Spent(None, 1)], Spent(None, 2), 3, True)],
        Series(300, [Point(300, 5, 6, 1, 2)], Point(0, 2)),
        True,
    ),
    Spent("m", 4, 1, 2),
    Breakdown("model", [], Spent(), 3, True),
    Point(300, 5, 6, 1, 2),
    Series(300, [], Point(0, 2)),
    WalletDay("2026-11-30", 8),
    WalletDay("2026-11-30", 8, {"late": 1}, 2, 3, 4, 5),
    Standing("jev", "usd", "2026-11-30", 0, 86_400, 1_000),
    Standing("users", "usd", "2026-11-30", 0, 86_400, 1_000, 1, 2, 3, "alice"),
    Noted("n/a", 1, "why", {"user": "alice"}, 7, 1_000, "open"),
    Noted(
        "n/a",
        1,
        "why",
        {"user": "alice"},
        7,
        1_000,
        "settled",
        {"usd": 400},
        {"usd": 300},
        601_000,
        ["more"],
        1,
        2_000,
        "done",
        True,
        "n/b",
        9_000,
    ),
    NotedAt(7),
    NotedAt(7, Noted("n/a", 1, "why", {}, 7, 1_000, "open")),
    NotedPage("n"),
    NotedPage("n", 4, True),
]

STORED_CARRIED = """
{"v":1,"from":"","asks":[]}

{"v":1,"from":"_INBOX.x","asks":[{"ask":"renew","hold":"a","n":1}]}

{"hold":"a","charged":{"usd":400}}

{"seq":7,"at":1000}

{"seq":7,"at":1000,"lapsed":[{"hold":"a","charged":{"usd":400}}],"out":[{"outcome":"done","id":"f"},
 {"outcome":"late","id":"a","by":5000}]}

{"period":"2026-11-30","limit":1000}

{"day":"2026-11-30","end":86400,"upto":6}

{"seq":7,"at":86400,"sealed":[{"day":"2026-11-30","end":86400,"upto":6,"open_holds":2,
 "budgets":{"jev":{"period":"2026-11-30","limit":1000,"settled":1,"held":2,"extra":3}}}]}

{"day":"2026-11-30","end":86400,"upto":6,"open_holds":2,
 "budgets":{"jev":{"period":"2026-11-30","limit":1000,"settled":1,"held":2,"extra":3},
 "b":{"period":"total","limit":9}}}

{"period":"2026-11-30","limit":1000,"settled":1,"held":2,"extra":3}

{"v":1,"engine":"e1","upto":7,"n":1,"told":[{"seq":7,"at":1000}]}

{"to":"_INBOX.x","seq":7,"at":1000,"out":[{"outcome":"done","id":"f"}]}

{"told":8,"chain":"00ff","answers":[{"to":"_INBOX.x","seq":7,"at":1000,"out":[{"outcome":"done","id":"f"}]}]}

{"wallet":"main","seq":8,"as_of":1000,"plan":"","budgets":[]}

{"wallet":"main","seq":8,"as_of":1000,"plan":"d1","budgets":[{"name":"jev","unit":"usd","scale":9,"per":"day",
 "zone":"UTC","period":"2026-11-30","start":0,"resets_at":86400,"limit":1000,"settled":1,"held":2,"extra":3},
 {"name":"neurons","unit":"neurons","scale":6,"per":"day","zone":"UTC","period":"2026-11-30","start":0,
 "resets_at":86400,"limit":1000,"settled":1,"held":2,"extra":3,"public":"amounts","source":"cloudflare",
 "note":"a note","link":"https://example.org","first_exhausted_at":700,"observed":{"source":"cloudflare",
 "figure":4,"as_of":900},"earlier_open":1,"reading":{"source":"cloudflare","every_s":30,"read_at":950,
"unreadable":"silent"}}],"frozen":[{"scope":"all","reason":"incident","since":900},
 {"scope":"jev","reason":"incident","since":900,"until":9000}],"open_holds":2,
 "alerts":[{"id":"alert:percent:jev:2026-11-30:75","text":"75 % used","at":950,"delivered":true}],
 "barred":[{"label":"user","value":"mallory","reason":"leaked"},
  {"label":"key","value":"k1","until":9000,"guard":"storms"}],"barred_more":3}

{"id":"alert:conflict::2026-11-30:1","rule":"conflict","text":"odd","at":950}

{"id":"alert:percent:jev:2026-11-30:75","rule":"percent","text":"75 % used","at":950,"seq":7,"budget":"jev",
 "period":"2026-11-30","threshold":"75","unit":"usd","figures":{"used":"0.75"},"deliveries":{"ops":"sent"}}

{"target":"ops","delivered":true}

{"target":"ops","delivered":false,"why":"it does not answer in time"}

{"id":"a","state":"open","first":7,"at":1000,"charged":{"usd":0}}

{"id":"a","state":"open","first":7,"at":1000,"charged":{"usd":0},"amounts":{"usd":400},"progress":{"usd":5},
 "expires_at":601000,"periods":{"jev":"2026-11-30"}}

{"id":"a","state":"stray","first":7,"at":1000,"charged":{"usd":5},"key":"7f3qk2m5xa"}

{"budget":"jev","unit":"usd","scale":9,"period":"2026-11-30","start":0,"end":86400,"seq":8,"limit":1000}

{"budget":"jev","unit":"usd","scale":9,"period":"2026-11-30","start":0,"end":86400,"seq":8,"limit":1000,
 "settled":1,"held":2,"extra":3,"peak":4,"first_exhausted_at":5,"holds":6,"settles":7,"refused":{"busy":1},
 "overruns":8,"strays":9,"lapsed":10}

{"day":"2026-11-30","end":86400,"seq":7,"at":86405}

{"budget":"jev","unit":"usd","scale":9,"period":"2026-11-30","start":0,"end":86400,"seq":8,"limit":1000,
 "settled":1,"held":2,"extra":3,"sealed":{"day":"2026-11-30","end":86400,"seq":7,"at":86405},
 "settled_after_seal":-1,"extra_after_seal":1}

{"budget":"jev","unit":"usd","scale":9,"period":"2026-11-30","start":0,"end":86400,"seq":8,"limit":1000,
 "peak_at":11,"open_holds":12,"wasted":13,"adjusted":-14,"late":15,"unheld":16,"unreported":17,"corrected":18,
 "estimated":19,"conflicts":20,"unreconciled":-21,"unreconciled_holds":22}

{"budget":"jev","period":"2026-11-30","seq":8,"settled":7,"breakdowns":[]}

{"budget":"jev","period":"2026-11-30","seq":8,"settled":7,
 "breakdowns":[{"label":"model","top":[{"value":"m","settled":4,"holds":1,"refused":2},{"settled":1}],
 "other":{"settled":2},"others":3,"uncounted":true}],
 "series":{"step_s":300,"points":[{"at":300,"settled":5,"held":6,"holds":1,"refused":2}],
 "before":{"at":0,"settled":2}},"more_labels":true}

{"value":"m","settled":4,"holds":1,"refused":2}

{"label":"model","top":[],"other":{},"others":3,"uncounted":true}

{"at":300,"settled":5,"held":6,"holds":1,"refused":2}

{"step_s":300,"points":[],"before":{"at":0,"settled":2}}

{"day":"2026-11-30","seq":8}

{"day":"2026-11-30","seq":8,"refused":{"late":1},"conflicts":2,"invalid":3,"unknown":4,"forgotten":5}

{"budget":"jev","unit":"usd","period":"2026-11-30","start":0,"resets_at":86400,"limit":1000}

{"budget":"users","unit":"usd","period":"2026-11-30","start":0,"resets_at":86400,"limit":1000,"settled":1,
 "held":2,"extra":3,"each":"alice"}

{"id":"n/a","number":1,"memo":"why","labels":{"user":"alice"},"first":7,"at":1000,"state":"open"}

{"id":"n/a","number":1,"memo":"why","labels":{"user":"alice"},"first":7,"at":1000,"state":"settled",
 "amounts":{"usd":400},"charged":{"usd":300},"expires_at":601000,"renewed":["more"],"renewals":1,
 "ended_at":2000,"ended":"done","released":true,"hold":"n/b","forget_at":9000}

{"upto":7}

{"upto":7,"noted":{"id":"n/a","number":1,"memo":"why","labels":{},"first":7,"at":1000,"state":"open"}}

{"namespace":"n"}

{"namespace":"n","beyond":4,"newest":true}
"""

SEALED = (
    b'{"v":1,"engine":"e1","upto":7,"n":1,"told":[{"seq":7,"at":1000,"out":[{"outcome":"done","id":"f"}]}],'
    b'"chain":"64f67a522b12e32064b96089eb39a0141099be9305e999d5d49f64d6eecff217"}'
)


def examples(values: Sequence[msgspec.Struct], stored: str) -> list[tuple[msgspec.Struct, bytes]]:
    """Each value with its bytes, wrapped for the eye: blank lines divide them, single line breaks are not stored."""
    raws = ["".join(line.strip() for line in block.splitlines()).encode() for block in stored.strip().split("\n\n")]
    return list(zip(values, raws, strict=True))


EXAMPLES = examples(ASKS, STORED_ASKS) + examples(OUTCOMES, STORED_OUTCOMES) + examples(CARRIED, STORED_CARRIED)
IDS = [f"{type(value).__name__} {number}" for number, (value, _) in enumerate(EXAMPLES)]


@pytest.mark.parametrize(("value", "raw"), EXAMPLES, ids=IDS)
def test_the_stored_bytes_are_these(value: msgspec.Struct, raw: bytes) -> None:
    assert msgspec.json.encode(value) == raw


@pytest.mark.parametrize(("value", "raw"), EXAMPLES, ids=IDS)
def test_the_stored_bytes_are_read_as_this(value: msgspec.Struct, raw: bytes) -> None:
    assert msgspec.json.decode(raw, type=_read_as(value)) == value


@pytest.mark.parametrize(("value", "raw"), EXAMPLES, ids=IDS)
def test_a_field_from_the_future_does_not_stop_the_past_from_being_read(value: msgspec.Struct, raw: bytes) -> None:
    assert msgspec.json.decode(raw[:-1] + b',"from_the_future":{"x":[1]}}', type=_read_as(value)) == value


def test_every_ask_and_every_outcome_has_an_example() -> None:
    assert {type(value) for value in ASKS} == set(get_args(AnyAsk))
    assert {type(value) for value in OUTCOMES} == set(get_args(AnyOutcome))


def test_every_field_of_a_stored_message_is_in_an_example() -> None:
    for kind in {type(value) for value, _ in EXAMPLES}:
        written = b" ".join(raw for value, raw in EXAMPLES if type(value) is kind)
        missing = [field for field in kind.__struct_encode_fields__ if f'"{field}":'.encode() not in written]
        assert not missing, f"{kind.__name__} has no example with {missing}"


def test_a_told_is_stored_with_its_chain_last() -> None:
    told = Told(engine="e1", upto=7, n=1, told=[Entry(7, 1_000, [], [Done("f")])])
    asked = msgspec.json.encode(AskMessage(asks=[Freeze("f", "all", "incident")]))
    body = msgspec.json.encode(told)[:-1]
    sealed = seal(body, link(GENESIS, [(7, 1_000, asked)], body))
    assert sealed == SEALED
    assert msgspec.json.decode(sealed, type=Told) == told
    assert open_sealed(sealed)[0] == body


def test_the_digest_of_a_plan_is_this() -> None:
    assert digest(PLAN) == "23f33d5d574e75f1492a558783ad97f1"
    assert digest(Plan(budgets={"jev": Budget("usd", 1_000)}, tzdata="2026.1")) == "26dbe75f89216a0437e7a4af20015e74"
    assert digest(TIERED) == "87f9d645bf78b2bbcc335e1df500dc6a"


def _read_as(value: msgspec.Struct) -> object:
    for union in (AnyAsk, AnyOutcome):
        if type(value) in get_args(union):
            return union
    return type(value)
