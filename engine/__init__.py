"""Decides what may be spent. `engine.core` holds the rules, the modules beside it put them on a JetStream stream."""

from zoneinfo import ZoneInfo, reset_tzpath

# Only the pinned tzdata package speaks, so every engine cuts days alike whatever the system's files say.
reset_tzpath(to=())
ZoneInfo.clear_cache()  # nor what somebody imported before us read from them
