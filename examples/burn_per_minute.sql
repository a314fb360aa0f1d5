-- How fast each budget burns: what was settled in each minute (UTC), and what was used at the end of it.
SELECT
    budget,
    each,
    left(at_utc, 16) AS minute,
    unit,
    sum(settled) AS settled,
    arg_max(used, (seq, place)) AS used
FROM 'export.parquet'
WHERE budget IS NOT NULL AND outcome <> 'exhausted'
GROUP BY budget, each, minute, unit
ORDER BY budget, each, minute;
