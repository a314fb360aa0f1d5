"""Faults of engine and client to plant: each a way in which such programs lose money when something dies or is late.

As in `faults.py`; the tests that must notice run the real engine and client in the simulation.
"""

from __future__ import annotations

from planted.faults import Fault

CRASH_FAULTS = [
    Fault(
        "a told claims no place",
        "journal.py",
        "if after_told is not None:",
        "if after_told is not None and msg_id is not None:",
        "test_scenarios.py::test_m12_an_engine_that_slept_between_deciding_and_telling_is_refused_and_follows",
    ),
    Fault(
        "the reply goes out before the record",
        "service.py",
        "                self._moved.clear()\n",
        "                self._moved.clear()\n"
        "                await self._reply([self._decided[index] for index in range(self._proposal.n)])\n",
        "test_simulation.py::test_an_engine_may_crash_at_every_single_step",
    ),
    Fault(
        "a gap is not noticed",
        "follower.py",
        "if seq != self.last + 1 and not await self._passed_over(seq):",
        "if seq <= self.last:",
        "test_scenarios.py::test_a_delivery_that_is_lost_is_noticed_and_read_again",
    ),
    Fault(
        "what was not acknowledged is told a second time",
        "service.py",
        "            return self._moved.is_set()\n",
        '            await self._journal.append("told", proposal.message, wait_s=TOLD_WAIT_S)\n',
        "test_scenarios.py::test_a_told_whose_acknowledgement_is_lost_is_told_once",
    ),
    Fault(
        "time is the engine's own clock",
        "service.py",
        "seq=stored.seq, ts=stored.ts, asks=asks",
        "seq=stored.seq, ts=time.time_ns(), asks=asks",
        "test_scenarios.py::test_engines_whose_own_clocks_are_wrong_decide_alike",
    ),
    Fault(
        "a standby speaks at once",
        "service.py",
        "if not self._mine and not await self._patience_over():",
        "if not self.ready.is_set() and not await self._patience_over():",
        "test_scenarios.py::test_a_standby_says_nothing_while_the_other_speaks",
    ),
    Fault(
        "a refused told is believed to be on record",
        "service.py",
        "            if refused.code not in WRONG_LAST_SEQUENCE:\n",
        "            await self._reply([self._decided[index] for index in range(proposal.n)])\n"
        "            if refused.code not in WRONG_LAST_SEQUENCE:\n",
        "test_scenarios.py::test_engines_whose_own_clocks_are_wrong_decide_alike",
    ),
    Fault(
        "who asks again asks under a new id",
        "asking.py",
        "                self._enqueue(block)\n",
        '                block.encoded = block.encoded.replace(b\'"id":"\', b\'"id":"again-\')\n'
        "                self._enqueue(block)\n",
        "test_scenarios.py::test_who_did_not_hear_a_reply_asks_again_under_the_same_id_and_hears_what_stands",
    ),
    Fault(
        "nobody says that a caller gave up",
        "asking.py",
        "        if block.sent:\n",
        "        if block.sent and block.kept:\n",
        "test_scenarios.py::test_a_hold_whose_caller_left_is_given_up",
    ),
    Fault(
        "what is refused is taken for not there",
        "asking.py",
        "if block.stored or block.doubtful:",
        "if block.stored and block.kept:",
        "test_scenarios.py::test_a_hold_that_was_stored_before_the_stream_was_full_is_taken_back",
    ),
    Fault(
        "a settlement ends with its caller's patience",
        "asking.py",
        "            block.go_on_alone()\n",
        "            self._end(block)\n",
        "test_scenarios.py::test_what_was_settled_while_the_stream_was_full_gets_there_when_there_is_room",
    ),
    Fault(
        "a settlement is dropped with the caller who left at the door",
        "client.py",
        "            self._asker.keep(asks)\n            raise\n",
        "            raise\n",
        "test_scenarios.py::test_a_settlement_whose_caller_left_while_its_client_looked_at_the_plan_is_kept",
    ),
    Fault(
        "what was spooled is sent under a new id",
        "asking.py",
        "            asks = decode(slip.asks)\n",
        '            slip.asks = slip.asks.replace(b\'"hold":"\', b\'"hold":"again-\')\n'
        "            asks = decode(slip.asks)\n",
        "test_on_disk.py::test_what_was_handed_to_a_client_that_is_killed_comes_back_once_with_the_next",
    ),
    Fault(
        "what the stream has taken stays in the spool",
        "asking.py",
        "            self._spool.strike(block.slip)\n",
        "",
        "test_on_disk.py::test_what_was_handed_to_a_client_that_is_killed_comes_back_once_with_the_next",
    ),
    Fault(
        "what is sent is struck from the spool before the stream has it",
        "asking.py",
        "        self._unanswered[token] = message\n",
        "        self._unanswered[token] = message\n"
        "        for block in message.blocks:\n"
        "            if block.slip is not None and self._spool is not None:\n"
        "                self._spool.strike(block.slip)\n",
        "test_on_disk.py::test_what_was_kept_outlives_one_client_after_the_other_until_the_stream_takes_it",
    ),
    Fault(
        "what is kept is not synced",
        "spool_file.py",
        "            os.fsync(self._descriptor)\n",
        "",
        "test_on_disk.py::test_what_is_said_to_be_kept_outlives_a_power_cut",
    ),
    Fault(
        "the spool of a client that lives is adopted",
        "spool_file.py",
        "        except BlockingIOError:\n            return False\n",
        "        except BlockingIOError:\n            return True\n",
        "test_on_disk.py::test_what_a_living_client_keeps_is_left_to_it",
    ),
    Fault(
        "what the stream calls a duplicate is believed to be there",
        "asking.py",
        "if not appended.duplicate or await self._journal.stored_as(data, appended):",
        "if appended.seq:",
        "test_scenarios.py::test_what_the_stream_claims_to_have_already_is_read_back",
    ),
    Fault(
        "the hash of a snapshot is not looked at",
        "snapshots.py",
        "if blake2b(view[:-HASH_BYTES], digest_size=HASH_BYTES).digest() != view[-HASH_BYTES:]:",
        "if len(view) < HASH_BYTES:",
        "test_on_disk.py::test_a_snapshot_that_was_altered_is_left_out",
    ),
    Fault(
        "a snapshot is not held against the stream",
        "snapshots.py",
        "        await prove(snapshot, journal)\n",
        "        pass\n",
        "test_on_disk.py::test_m13_a_snapshot_has_seen_more_than_the_stream_has",
    ),
    Fault(
        "a snapshot is taken of what was not told",
        "service.py",
        "        if self._decided:\n"
        "            return\n"
        "        if self._keeper is not None and self._snapshot_due():\n",
        "        if self._keeper is not None and self._snapshot_due():\n",
        "test_on_disk.py::test_a_snapshot_is_never_of_what_was_not_told",
    ),
    Fault(
        "the told that a snapshot is of is not remembered",
        "service.py",
        "        self._receipts.remember(self.told_seq, self.chain)\n",
        "",
        "test_on_disk.py::test_who_was_told_something_asks_an_engine_that_begins_right_behind_it",
    ),
    Fault(
        "what another told while a receipt was read is told again",
        "service.py",
        "            if not self._decided:  # another has told it meanwhile\n                continue\n",
        "",
        "test_on_disk.py::test_an_engine_may_read_an_old_receipt_while_another_tells",
    ),
    Fault(
        "what the witness has seen is ignored",
        "witness.py",
        "            accepted = await losses.accept(found, but=seen.losses)\n",
        "            continue\n",
        "test_on_disk.py::test_m2_a_witness_has_seen_more_than_the_stream_has",
    ),
    Fault(
        "what clients were told is not compared with the stream",
        "service.py",
        "            agreed = await self._receipts.agree()\n",
        "            agreed = True\n",
        "test_on_disk.py::test_m2_a_client_was_told_more_than_the_stream_has",
    ),
]
