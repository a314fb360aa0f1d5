"""Alerts: what somebody should hear of before the day is over, once each, to webhooks outside.

    told entries ─> fold (pure) ─> alerts raised ─> one sender a target ─> Slack, or JSON with a signature
                                        │                └─ records: claimed, sent, missed; shared by all projectors
                                        └─ freezing: a runaway asks for a freeze, under an id that follows from the hour

An alert's id follows from rule, budget, period and threshold. It is sent at least once, and never after it was recorded
as sent.
"""
