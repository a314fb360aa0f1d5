-- The twenty users who spent most of each budget, and how often each was refused.
SELECT
    budget,
    labels ->> 'user' AS user,
    unit,
    sum(settled) AS settled,
    count(DISTINCT hold) FILTER (WHERE outcome = 'held') AS held_calls,
    count(*) FILTER (WHERE outcome = 'exhausted') AS refused
FROM 'export.parquet'
WHERE budget IS NOT NULL AND labels ->> 'user' IS NOT NULL
GROUP BY budget, user, unit
QUALIFY row_number() OVER (PARTITION BY budget ORDER BY sum(settled) DESC, user) <= 20
ORDER BY budget, settled DESC, user;
