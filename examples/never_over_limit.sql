-- Adds up every meter anew and shows where the record disagrees with itself: no row is what you want to see.
-- `sum`: what the changes add up to is not what is said to be used. `limit`: a hold was granted past its limit.
WITH running AS (
    SELECT
        *,
        first_value(used - settled - held - extra) OVER meter
            + sum(settled + held + extra) OVER meter AS added_up
    FROM 'export.parquet'
    WHERE used IS NOT NULL AND outcome <> 'exhausted'
    WINDOW meter AS (
        PARTITION BY budget, each, period, restarts
        ORDER BY seq, place
        ROWS UNBOUNDED PRECEDING
    )
)
SELECT
    seq,
    CASE WHEN added_up <> used THEN 'sum' ELSE 'limit' END AS wrong,
    budget, each, period, unit, added_up, used, "limit"
FROM running
WHERE added_up <> used OR (outcome = 'held' AND held > 0 AND used > "limit")
ORDER BY seq, place;
