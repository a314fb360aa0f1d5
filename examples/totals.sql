-- What every budget came to in every period: settled, still held, and others on the account.
-- Integers of the unit's smallest part; `scale` is how many of their digits stand after the point.
SELECT
    budget,
    period,
    unit,
    any_value(scale) AS scale,
    sum(settled) AS settled,
    sum(held) AS held,
    sum(extra) AS extra,
    count(*) FILTER (WHERE outcome = 'exhausted') AS refused
FROM 'export.parquet'
WHERE budget IS NOT NULL
GROUP BY budget, period, unit
ORDER BY budget, period;
