-- One call's whole life, in the order of the record. Put its id here:
SET VARIABLE hold = 'the-id-of-the-hold';

SELECT seq, at_utc, kind, outcome, state, budget, each, period, unit, amount_text, settled_text, held_text, flags
FROM 'export.parquet'
WHERE hold = getvariable('hold')
ORDER BY seq, place;
