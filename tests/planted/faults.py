"""Faults to plant: one line of the core made wrong, and the test that must notice.

Each is a mistake somebody in this field has made. `was` must stand exactly once in the file, so that a fault is never
planted beside the place it means.
"""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """One planted fault: where, what stands there, what is put there, and the test that catches it."""

    name: str
    file: str
    was: str
    planted: str
    caught_by: str


FAULTS = [
    Fault(
        "what is held does not count against the limit",
        "holding.py",
        "if amount and place.used + amount > place.limit:",
        "if amount and place.base + amount > place.limit:",
        "test_hold.py::test_two_callers_cannot_both_spend_the_last_of_the_day",
    ),
    Fault(
        "exactly what is left does not fit",
        "holding.py",
        "if amount and place.used + amount > place.limit:",
        "if amount and place.used + amount >= place.limit:",
        "test_hold.py::test_a_hold_may_take_exactly_what_is_left",
    ),
    Fault(
        "a hold of nothing is refused once the budget is overdrawn",
        "holding.py",
        "if amount and place.used + amount > place.limit:",
        "if place.used + amount > place.limit:",
        "test_hold.py::test_a_hold_of_nothing_always_fits",
    ),
    Fault(
        "a hold lapses one tick after its expiry",
        "wallet.py",
        "if index < len(heap) and heap[index][0] <= at:",
        "if index < len(heap) and heap[index][0] < at:",
        "test_lapse.py::test_m15_a_hold_lapses_at_its_expiry_and_not_before",
    ),
    Fault(
        "what is left is never shown below zero",
        "wallet.py",
        "Left(limit, limit - meter.used_after(settled, held))",
        "Left(limit, max(0, limit - meter.used_after(settled, held)))",
        "test_settle.py::test_what_is_left_is_shown_below_zero_too",
    ),
    Fault(
        "a late charge goes to the current period",
        "settling.py",
        "_new_lines(wallet, new, record.labels, moment=record.at)",
        "_new_lines(wallet, new, record.labels, moment=wallet.at)",
        "test_settle.py::test_a_unit_the_hold_lacks_is_charged_to_the_day_of_the_hold_and_flagged",
    ),
    Fault(
        "one of the budgets is forgotten",
        "evolve.py",
        "for budget, line in told.budgets.items():",
        "for budget, line in list(told.budgets.items())[:1]:",
        "test_settle.py::test_every_budget_that_was_held_is_settled",
    ),
    Fault(
        "a reported zero is taken for missing",
        "settling.py",
        "if amount or unit in charged:",
        "if amount:",
        "test_settle.py::test_zero_is_a_settlement",
    ),
    Fault(
        "a unit that is not reported is given back",
        "settling.py",
        "said, charged = ask.amounts, record.takes().copy()",
        "said, charged = ask.amounts, dict.fromkeys(record.takes(), 0)",
        "test_settle.py::test_a_unit_the_hold_has_and_the_settle_omits_is_charged_at_the_grant",
    ),
    Fault(
        "a charge stops at the grant",
        "settling.py",
        "charged[unit] = amount",
        "charged[unit] = min(amount, charged.get(unit, 0))",
        "test_settle.py::test_a_settle_above_the_hold_is_charged_in_full_and_flagged",
    ),
    Fault(
        "every message is decided at the time of the first",
        "wallet.py",
        "return max(self.at, timestamp)",
        "return self.at or timestamp",
        "test_lapse.py::test_time_passes_only_through_messages",
    ),
    Fault(
        "time runs backwards",
        "wallet.py",
        "return max(self.at, timestamp)",
        "return timestamp",
        "test_tell.py::test_time_never_runs_backwards",
    ),
    Fault(
        "the base is below the provider's figure",
        "meter.py",
        "self.extra += self.raised_by(figure)",
        "self.extra += 0",
        "test_observe.py::test_a_figure_above_what_was_settled_shows_others_on_the_account",
    ),
    Fault(
        "what others spent is not raised when our own falls",
        "meter.py",
        "self.extra = max(self.extra, self.figure - self.settled)",
        "self.extra = max(self.extra, 0)",
        "test_observe.py::test_where_settled_falls_the_figure_still_stands",
    ),
    Fault(
        "what was settled is taken out of the provider's figure twice",
        "meter.py",
        "        return self.settled + self.extra\n",
        "        return max(self.settled, self.figure)\n",
        "test_meter.py::test_every_line_of_the_table_adds_up",
    ),
    Fault(
        "a closed hold is held again",
        "holding.py",
        "if closed is not None and (closed.ended_by is None or ask.by <= closed.ended_by):",
        "if closed is not None and (closed.ended_by is not None and ask.by <= closed.ended_by):",
        "test_hold.py::test_after_it_closed_an_id_is_no_permission_to_call",
    ),
    Fault(
        "another call under a known id is taken for the same",
        "holding.py",
        'return Conflict(ask.id, field) if field else Again(ask.id, record.first, "open")',
        'return Again(ask.id, record.first, "open")',
        "test_hold.py::test_another_hold_under_a_known_id_is_a_conflict_that_names_the_field",
    ),
    Fault(
        "a release ignores the progress",
        "settling.py",
        "        charged = {unit: record.progress.get(unit, 0) for unit in record.units()}\n"
        '        return _settled(wallet, record, ask, charged, state="settled"',
        "        charged = {unit: 0 for unit in record.units()}\n"
        '        return _settled(wallet, record, ask, charged, state="settled"',
        "test_settle.py::test_a_release_keeps_the_progress_already_reported",
    ),
    Fault(
        "an ask in the last moment is late",
        "holding.py",
        "if at > ask.by:",
        "if at >= ask.by:",
        "test_hold.py::test_a_hold_is_late_only_after_its_caller_stopped_waiting",
    ),
    Fault(
        "a lapse is charged at its progress under the charge policy",
        "wallet.py",
        "return self.takes()\n        return",
        "return self.costs()\n        return",
        "test_lapse.py::test_a_lapse_charges_the_grant_because_the_call_may_have_happened",
    ),
    Fault(
        "the limit of one user is ignored",
        "plan.py",
        "if not budget.limit_for:",
        "if budget.limit:",
        "test_hold.py::test_a_limit_for_one_user_stands_in_for_the_common_one",
    ),
    Fault(
        "a lapse is corrected twice",
        "evolve.py",
        'elif told.state in ("lapsed", "estimated"):',
        'elif told.state in ("lapsed", "estimated", "corrected"):',
        "test_settle_provisional.py::test_it_is_corrected_exactly_once",
    ),
    Fault(
        "a refused attempt is not remembered",
        "holding.py",
        'return Again(ask.id, refusal.first, "refused")',
        "return None",
        "test_hold.py::test_a_refused_attempt_asked_again_is_refused_alike_though_there_is_room_now",
    ),
    Fault(
        "giving up ignores a later attempt",
        "settling.py",
        "return ask.by is not None and ask.by < record.by",
        "return False",
        "test_settle.py::test_giving_up_counts_only_if_no_later_attempt_was_made",
    ),
    Fault(
        "a freeze ends one tick late",
        "holding.py",
        "if frost is not None and (frost.until is None or wallet.at < frost.until):",
        "if frost is not None and (frost.until is None or wallet.at <= frost.until):",
        "test_freeze.py::test_a_freeze_that_is_over_when_it_is_asked_stops_nothing",
    ),
    Fault(
        "the chain does not commit to the order of time",
        "chain.py",
        "running.update(seq.to_bytes(8) + timestamp.to_bytes(8))",
        "running.update(seq.to_bytes(8))",
        "test_chain.py::test_any_other_asks_give_another_chain",
    ),
    Fault(
        "a tier ends one smallest part early",
        "tiers.py",
        "if used * FULL <= limit * threshold:",
        "if used * FULL < limit * threshold:",
        "test_tiers.py::test_up_to_means_the_last_smallest_part",
    ),
    Fault(
        "the emptiest budget decides the tier",
        "tiers.py",
        "return used * other_limit > other_used * limit",
        "return used * other_limit < other_used * limit",
        "test_tiers.py::test_the_fullest_of_the_budgets_decides",
    ),
    Fault(
        "the times of a cohort reach past full",
        "tiers.py",
        "(min(tier.up_to * times, FULL), tier.grade)",
        "(tier.up_to * times, tier.grade)",
        "test_tiers.py::test_times_end_at_full",
    ),
    Fault(
        "a budget with a limit of zero is never full",
        "tiers.py",
        "(2 if meter.used > 0 else 1, 1)",
        "(meter.used, 1)",
        "test_tiers.py::test_of_a_limit_of_nothing_all_is_used",
    ),
    Fault(
        "who names no grade is refused by the tiers",
        "holding.py",
        "tier = 0 if ladder is None or option.grade is None else",
        "tier = 0 if ladder is None else",
        "test_tiers.py::test_an_option_without_a_grade_is_not_judged",
    ),
    Fault(
        "a refusal by money speaks of an option that the tier forbids",
        "holding.py",
        "            too_full = tier\n            continue\n",
        "            last = option, places\n            continue\n",
        "test_tiers.py::test_where_money_refuses_what_the_tier_permits_the_last_permitted_option_is_spoken_of",
    ),
    Fault(
        "what is past the memory comes back when the plan remembers longer",
        "evolve.py",
        "wallet.horizon = max(wallet.horizon, at - wallet.plan.remember_s * NS)",
        "wallet.horizon = at - wallet.plan.remember_s * NS",
        "test_memory.py::test_what_is_past_the_memory_does_not_come_back_when_the_plan_remembers_longer",
    ),
    Fault(
        "a loss counts what is known on top of what is left",
        "decide.py",
        "by = max(0, use.used - place.used)",
        "by = use.used",
        "test_loss.py::test_a_loss_never_lowers_what_is_used",
    ),
    Fault(
        "after a loss a budget nobody knows anything of goes on",
        "evolve.py",
        "for budget, until in told.frozen.items():",
        "for budget, until in dict[str, int | None]().items():",
        "test_loss.py::test_a_budget_nobody_knows_anything_of_is_frozen_until_it_resets",
    ),
    Fault(
        "a day is sealed before the lapses that were due in it",
        "tell.py",
        "while waiting and wallet.open[waiting[0].hold].expires_at < end:",
        "while False and wallet.open[waiting[0].hold].expires_at < end:",
        "test_seals.py::test_what_was_due_before_the_end_of_the_day_lapses_before_its_seal",
    ),
    Fault(
        "what is due at midnight lapses on the day before",
        "tell.py",
        "while waiting and wallet.open[waiting[0].hold].expires_at < end:",
        "while waiting and wallet.open[waiting[0].hold].expires_at <= end:",
        "test_seals.py::test_what_is_due_at_the_very_end_lapses_after_the_seal",
    ),
    Fault(
        "the wallet's day ends at midnight in UTC whatever its zone",
        "evolve.py",
        'day = periods.period_at(wallet.at, per="day", zone=wallet.plan.zone)',
        'day = periods.period_at(wallet.at, per="day", zone="UTC")',
        "test_seals.py::test_a_day_of_23_or_25_hours_is_sealed_at_its_own_end",
    ),
    Fault(
        "a seal shows the meters of single users",
        "seals.py",
        """        if rule.budget.each is not None:
            continue
        place = wallet.place(rule, None, {}, end - 1)
""",
        """        each = next((key[2] for key in wallet.metering if key[0] == name), None)
        place = wallet.place(rule, each, {}, end - 1)
""",
        "test_seals.py::test_meters_of_single_users_are_not_in_a_seal",
    ),
    Fault(
        "a seal shows the period that begins with its end",
        "seals.py",
        "wallet.place(rule, None, {}, end - 1)",
        "wallet.place(rule, None, {}, end)",
        "test_seals.py::test_the_first_message_at_or_after_midnight_seals_the_day",
    ),
    Fault(
        "a new zone forgets the day in progress",
        "evolve.py",
        "wallet.day_ends = max(periods.end_of_day(wallet.day, ask.plan.zone), wallet.at)",
        "_begin_day(wallet)",
        "test_seals.py::test_a_zone_further_east_where_the_day_is_over_ends_it_with_the_plan",
    ),
    Fault(
        "a guard goes off one hold too late",
        "guards.py",
        "if window is None or len(window) < self.guard.more_than:",
        "if window is None or len(window) <= self.guard.more_than:",
        "test_guards.py::test_a_retry_storm_cools_at_the_31st_hold_and_is_told_until_when",
    ),
    Fault(
        "what is as old as the window still counts",
        "guards.py",
        "return _oldest(window) > at - self.guard.within_s * NS",
        "return _oldest(window) >= at - self.guard.within_s * NS",
        "test_guards.py::test_more_than_n_in_a_window_does_not_count_what_is_just_as_old_as_the_window",
    ),
    Fault(
        "a place that was seen before counts as another",
        "guards.py",
        'if isinstance(window, dict) and labels[self.guard.distinct or ""] in window:',
        "if False and isinstance(window, dict):",
        "test_guards.py::test_a_key_from_13_places_in_a_day_is_revoked_and_its_holds_may_still_settle",
    ),
    Fault(
        "a place is let go a day after it was first seen",
        "guards.py",
        "            window.pop(other, None)\n            window[other] = at\n",
        "            window.setdefault(other, at)\n",
        "test_guards.py::test_a_place_counts_for_a_day_after_it_was_last_seen",
    ),
    Fault(
        "a guard that went off goes off again at the next hold",
        "guards.py",
        "            watch.forget(labels[watch.guard.label])\n",
        "            pass\n",
        "test_guards.py::test_a_long_session_is_held_and_said_so_at_the_101st_hold_and_the_202nd",
    ),
    Fault(
        "a flood of new values pushes out those that are watched",
        "guards.py",
        "            if len(self.windows) >= GUARD_VALUES_MAX:\n                return\n",
        "            if len(self.windows) >= GUARD_VALUES_MAX:\n                self.windows.popitem(last=False)\n",
        "test_guards.py::test_beyond_the_limit_of_values_a_new_one_is_not_counted_and_none_is_evicted",
    ),
    Fault(
        "every ask makes the cooling longer",
        "holding.py",
        "return Cooling(id, label, cooled.until, labels[label], cooled.guard)",
        "return Cooling(id, label, wallet.at + 300 * NS, labels[label], cooled.guard)",
        "test_guards.py::test_a_retry_storm_cools_at_the_31st_hold_and_is_told_until_when",
    ),
    Fault(
        "a cooling ends one tick late",
        "evolve.py",
        "while wallet.warmings and wallet.warmings[0][0] <= wallet.at:",
        "while wallet.warmings and wallet.warmings[0][0] < wallet.at:",
        "test_guards.py::test_cooling_ends_on_time_without_a_tick",
    ),
    Fault(
        "nothing asks the time when a cooling ends",
        "wallet.py",
        "            moments.append(self.warmings[0][0])\n",
        "            pass\n",
        "test_guards.py::test_cooling_ends_on_time_without_a_tick",
    ),
    Fault(
        "a restored user stays cool",
        "evolve.py",
        "            wallet.cooling.pop((ask.label, ask.value), None)\n",
        "            pass\n",
        "test_guards.py::test_a_false_positive_is_restored_and_begins_anew",
    ),
    Fault(
        "another plan lets every guard begin anew",
        "guards.py",
        "known if known is not None and known.guard == guard else Watch(name, guard)",
        "Watch(name, guard)",
        "test_guards.py::test_a_guard_that_reads_as_before_goes_on_counting_under_another_plan_a_changed_one_begins",
    ),
    Fault(
        "a bucket of ended holds is marked as another",
        "closed.py",
        "self._marks[hash(id) % MARKS] |= self.mark",
        "self._marks[hash(id) % MARKS] |= 1",
        "test_memory.py::test_ids_that_share_a_place_in_the_table_of_marks_are_told_apart",
    ),
    Fault(
        "a mark is taken off while it is in use",
        "closed.py",
        "if not any(bucket.mark == mark for bucket in self._buckets):",
        "if any(bucket.mark == mark for bucket in self._buckets):",
        "test_memory.py::test_ids_that_share_a_place_in_the_table_of_marks_are_told_apart",
    ),
    Fault(
        "a renewed hold forgets what was asked at first",
        "evolve.py",
        "record.ask, record.held = record.first_ask(), record.first_answer()",
        "record.held = record.first_answer()",
        "test_first_answer.py::test_an_open_hold_says_in_what_another_ask_differs",
    ),
    Fault(
        "what a replayed grant leaves is not added up",
        "retell.py",
        "if meter.settled + meter.extra + meter.held + remaining != bound.limit:",
        "if remaining > bound.limit:",
        "test_retell.py::test_a_grant_that_was_left_out_of_the_sums_is_noticed_at_the_next_that_touches_the_budget",
    ),
    Fault(
        "what does not fit is taken in as granted",
        "retell.py",
        "if amount < 0 or remaining < 0 < amount:",
        "if amount < 0:",
        "test_retell.py::test_what_is_not_there_is_not_taken_in_as_granted",
    ),
    Fault(
        "what is rare is not decided again",
        "retell.py",
        "if decide(wallet, ask, wallet.at) != told:",
        "if type(decide(wallet, ask, wallet.at)) is not type(told):",
        "test_retell.py::test_what_cannot_have_been_told_is_not_taken_in",
    ),
]
