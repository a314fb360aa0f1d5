-- What each model cost, by budget: a call that several budgets count stands in each of them, once.
SELECT
    budget,
    coalesce(labels ->> 'model', '(none)') AS model,
    unit,
    count(DISTINCT hold) FILTER (WHERE outcome IN ('settled', 'stray', 'lapsed')) AS calls,
    sum(settled) AS settled
FROM 'export.parquet'
WHERE budget IS NOT NULL AND kind IN ('hold', 'settle', 'renew', 'lapse')
GROUP BY budget, model, unit
ORDER BY budget, settled DESC, model;
