"""Delivers small documents to somebody outside: at least once, under an id that stays, with no secret in any log.

    Delivery(name, carrier, sent) <- put(Parcel(id, body))         projector/delivery/delivery.py
        carrier: a Webhook (signed POST), a SecondStream (NATS), or anything with `carry(parcel)`
        sent:    a file of ids that were taken, so that a start does not begin again

`put` never waits. `run`, for as long as the process lives, carries one parcel after the other; one that is not taken
goes behind the others and is tried again, later each time. Whoever receives sees an id twice only where an answer was
lost or a process ended between delivery and note, and drops the second by its id.
"""
