-- Calls of which nobody has said exactly what they cost: still open, lapsed, or settled by a guess.
-- What one of them really cost may be told any time with `purse settle`.
WITH calls AS (
    SELECT
        hold,
        arg_max(coalesce(state, 'open'), (seq, place)) AS state,
        max(seq) FILTER (WHERE kind = 'hold') AS seq,
        max(at_utc) FILTER (WHERE kind = 'hold') AS at_utc,
        any_value(labels ->> 'model') AS model
    FROM 'export.parquet'
    WHERE outcome IN ('held', 'settled', 'stray', 'lapsed')
    GROUP BY hold
)
SELECT seq, at_utc, hold, state, model
FROM calls
WHERE seq IS NOT NULL AND state IN ('open', 'lapsed', 'estimated')
ORDER BY seq;
