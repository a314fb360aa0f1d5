"""Days as a finance person writes them down: every line is one ask, what was told, and what the books say after it.

Columns stand two blanks apart. `settled`, `held`, `extra` and `left` are those of the budget `jev` (1.00 usd a day) on
the day in the column `day`, otherwise of today.
"""

import re
import shlex

import pytest
from wallets import Books, budget

TABLES = {
    "a plain day": """
    when       ask                    told                            settled  held  extra  left
    09:00      hold a 0.40            held 0.40                          0.00  0.40   0.00  0.60
    09:00:02   hold b 0.50            held 0.50                          0.00  0.90   0.00  0.10
    09:00:03   hold c 0.20            exhausted: busy, 0.10 fits         0.00  0.90   0.00  0.10
    09:00:30   progress a 0.05        open 0.05                          0.05  0.85   0.00  0.10
    09:01      settle a 0.12          settled 0.12, 0.28 back            0.12  0.50   0.00  0.38
    09:01      settle a 0.12          again: settled                     0.12  0.50   0.00  0.38
    09:01:10   hold c 0.20            held 0.20                          0.12  0.70   0.00  0.18
    09:01:20   release b              settled 0.00, 0.50 back            0.12  0.20   0.00  0.68
    09:01:30   settle c 0.20          settled 0.20                       0.32  0.00   0.00  0.68
    09:02      hold d 1.50            exhausted: never, 0.68 fits        0.32  0.00   0.00  0.68
    09:02      hold d 0.90            exhausted: spent, 0.68 fits        0.32  0.00   0.00  0.68
    """,
    "a call costs more than was held": """
    when       ask                    told                            settled  held  extra  left
    09:00      hold a 0.60            held 0.60                          0.00  0.60   0.00   0.40
    09:00      hold b 0.40            held 0.40                          0.00  1.00   0.00   0.00
    09:01      settle a 0.61          settled 0.61 (overrun)             0.61  0.40   0.00  -0.01
    09:01      hold c 0.01            exhausted: busy, 0.00 fits         0.61  0.40   0.00  -0.01
    09:02      settle b 0.10          settled 0.10, 0.30 back            0.71  0.00   0.00   0.29
    09:02      hold c 0.29            held 0.29                          0.71  0.29   0.00   0.00
    09:03      settle c 2.00          settled 2.00 (overrun)             2.71  0.00   0.00  -1.71
    09:03      hold e 0.01            exhausted: spent, 0.00 fits        2.71  0.00   0.00  -1.71
    09:03      hold f 0               held 0.00                          2.71  0.00   0.00  -1.71
    """,
    "a lapse and the late truth": """
    when       ask                    told                                            settled  held  extra  left
    09:00      hold a 0.90            held 0.90                                          0.00  0.90   0.00  0.10
    09:09:59   nothing                nothing lapsed                                     0.00  0.90   0.00  0.10
    09:10      nothing                a lapsed at 0.90                                   0.90  0.00   0.00  0.10
    09:10      hold b 0.20            exhausted: spent, 0.10 fits                        0.90  0.00   0.00  0.10
    09:11      progress a 0.95        lapsed 0.95 (late, overrun)                        0.95  0.00   0.00  0.05
    09:12      settle a 0.30          corrected 0.30, 0.65 back (late, corrected)        0.30  0.00   0.00  0.70
    09:12      settle a 0.30          again: corrected                                   0.30  0.00   0.00  0.70
    09:13      settle a 0.20          conflict: amounts                                  0.30  0.00   0.00  0.70
    09:13      hold b 0.20            held 0.20                                          0.30  0.20   0.00  0.50
    """,
    "the provider counts too": """
    when       ask                    told                            settled  held  extra  left
    09:00      hold a 0.30            held 0.30                          0.00  0.30   0.00  0.70
    09:01      settle a 0.30          settled 0.30                       0.30  0.00   0.00  0.70
    09:02      observe 0.25           observed, raised by 0.00           0.30  0.00   0.00  0.70
    09:05      observe 0.50           observed, raised by 0.20           0.30  0.00   0.20  0.50
    09:06      hold b 0.40            held 0.40                          0.30  0.40   0.20  0.10
    09:07      settle b 0.35          settled 0.35, 0.05 back            0.65  0.00   0.20  0.15
    09:10      observe 0.80           observed, raised by 0.00           0.65  0.00   0.20  0.15
    09:15      observe 0.90           observed, raised by 0.05           0.65  0.00   0.25  0.10
    09:16      adjust -0.15           adjusted                           0.50  0.00   0.40  0.10
    09:17      hold c 0.20            exhausted: spent, 0.10 fits        0.50  0.00   0.40  0.10
    """,
    "midnight": """
    when                  ask             told                        day         settled  held  extra  left
    23:59:58              hold a 0.60     held 0.60                   2026-11-30     0.00  0.60   0.00  0.40
    23:59:59              hold b 0.50     exhausted: busy, 0.40 fits  2026-11-30     0.00  0.60   0.00  0.40
    2026-12-01 00:00      nothing         nothing lapsed              2026-11-30     0.00  0.60   0.00  0.40
    2026-12-01 00:00      hold b 0.50     held 0.50                   2026-12-01     0.00  0.50   0.00  0.50
    2026-12-01 00:00:03   settle a 0.45   settled 0.45, 0.15 back     2026-11-30     0.45  0.00   0.00  0.55
    2026-12-01 00:00:03   nothing         nothing lapsed              2026-12-01     0.00  0.50   0.00  0.50
    2026-12-01 00:00:05   settle b 0.50   settled 0.50                2026-12-01     0.50  0.00   0.00  0.50
    2026-12-01 00:00:05   nothing         nothing lapsed              2026-11-30     0.45  0.00   0.00  0.55
    2026-12-01 09:00      observe 0.60    observed, raised by 0.15    2026-11-30     0.45  0.00   0.15  0.40
    """,
    "a lowered limit": """
    when       ask                    told                            settled  held  extra  left
    09:00      hold a 0.40            held 0.40                          0.00  0.40   0.00   0.60
    09:01      settle a 0.30          settled 0.30, 0.10 back            0.30  0.00   0.00   0.70
    09:02      hold b 0.50            held 0.50                          0.30  0.50   0.00   0.20
    09:03      limit 0.50             planned                            0.30  0.50   0.00  -0.30
    09:03      limit 0.50             again                              0.30  0.50   0.00  -0.30
    09:04      hold c 0.10            exhausted: busy, 0.00 fits         0.30  0.50   0.00  -0.30
    09:04      hold c 0.30            exhausted: spent, 0.00 fits        0.30  0.50   0.00  -0.30
    09:05      renew b 1              held 0.50, renewal 1               0.30  0.50   0.00  -0.30
    09:06      renew b 2 0.51         exhausted: never, 0.50 fits        0.30  0.50   0.00  -0.30
    09:07      settle b 0.10          settled 0.10, 0.40 back            0.40  0.00   0.00   0.10
    09:08      hold c 0.10            held 0.10                          0.40  0.10   0.00   0.00
    09:09      limit 2.00             planned                            0.40  0.10   0.00   1.50
    """,
    "take what is left": """
    when       ask                    told                            settled  held  extra  left
    09:00      hold a 0.70            held 0.70                          0.00  0.70   0.00  0.30
    09:01      hold b 0.50 least=0.10   held 0.30                        0.00  1.00   0.00  0.00
    09:02      hold c 0.50 least=0.10   exhausted: busy, 0.00 fits       0.00  1.00   0.00  0.00
    09:03      settle a 0.65          settled 0.65, 0.05 back            0.65  0.30   0.00  0.05
    09:04      hold d 0.50 least=0.10   exhausted: busy, 0.05 fits       0.65  0.30   0.00  0.05
    09:04      hold e 0.50 least=0.05   held 0.05                        0.65  0.35   0.00  0.00
    09:05      settle b 0.31          settled 0.31 (overrun)             0.96  0.05   0.00  -0.01
    """,
    "a caller gives up": """
    when       ask                         told                       settled  held  extra  left
    09:00      hold a 0.40 by=09:00:05     held 0.40                     0.00  0.40   0.00  0.60
    09:00:06   hold a 0.40 by=09:00:11     again: open                   0.00  0.40   0.00  0.60
    09:00:07   release a by=09:00:05       again: open                   0.00  0.40   0.00  0.60
    09:00:12   release a by=09:00:11       settled 0.00, 0.40 back       0.00  0.00   0.00  1.00
    09:00:12   release a by=09:00:11       again: settled                0.00  0.00   0.00  1.00
    09:00:12   hold a 0.40 by=09:00:11     closed: settled 0.00          0.00  0.00   0.00  1.00
    09:00:13   hold a 0.30 by=09:00:18     held 0.30                     0.00  0.30   0.00  0.70
    09:00:20   release b by=09:00:25       stray nothing                 0.00  0.30   0.00  0.70
    09:00:21   hold b 0.10 by=09:00:25     closed: stray nothing         0.00  0.30   0.00  0.70
    """,
    "an incident": """
    when       ask                       told                         settled  held  extra  left
    09:00      hold a 0.40 user=alice    held 0.40                       0.00  0.40   0.00  0.60
    09:01      freeze user=alice         done                            0.00  0.40   0.00  0.60
    09:02      hold b 0.10 user=alice    frozen: user=alice              0.00  0.40   0.00  0.60
    09:02      hold c 0.10 user=bob      held 0.10                       0.00  0.50   0.00  0.50
    09:03      freeze all                done                            0.00  0.50   0.00  0.50
    09:03      hold d 0.10 user=bob      frozen: all                     0.00  0.50   0.00  0.50
    09:04      settle a 0.50             settled 0.50 (overrun)          0.50  0.10   0.00  0.40
    09:05      thaw all                  done                            0.50  0.10   0.00  0.40
    09:05      hold b 0.10 user=alice    frozen: user=alice              0.50  0.10   0.00  0.40
    09:06      thaw user=alice           done                            0.50  0.10   0.00  0.40
    09:07      hold b 0.10 user=alice    held 0.10                       0.50  0.20   0.00  0.30
    """,
}


@pytest.mark.parametrize("name", TABLES)
def test_every_line_of_the_day_is_right(name: str) -> None:
    books = Books(jev=budget("1.00", source="cloudflare"))
    titles, *lines = [re.split(r"\s{2,}", line.strip()) for line in TABLES[name].strip().splitlines()]
    for line in lines:
        row = dict(zip(titles, line, strict=True))
        told = ask(books.at(row["when"]), row["ask"])
        figures = books.meters(day=row.get("day"))
        found = {"told": told, "settled": figures.settled, "held": figures.held, "extra": figures.extra}
        assert found | {"left": figures.left} == {k: row[k] for k in ("told", "settled", "held", "extra", "left")}, line


def ask(books: Books, written: str) -> str:
    """One ask in words: a verb, its arguments, then `name=value`."""
    if written.startswith(("freeze", "thaw")):
        verb, scope = written.split()
        return books.freeze(scope) if verb == "freeze" else books.thaw(scope)
    verb, *said = shlex.split(written)
    options = dict(word.split("=") for word in said if "=" in word)
    words = [word for word in said if "=" not in word]
    match verb:
        case "nothing":
            return ", ".join(books.tick()) or "nothing lapsed"
        case "limit":
            return books.change(jev=budget(*words, source="cloudflare"))
        case "renew":
            hold, n, *rest = words
            return books.renew(hold, int(n), *rest)
        case "hold" | "settle" | "progress" | "release" | "observe" | "adjust":
            return str(getattr(books, verb)(*words, **options))
        case _:
            raise AssertionError(f"no such ask: {written}")
