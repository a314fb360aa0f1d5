-- Sequences that are missing from a raw record, or stand twice. No row: there are none.
-- Reads what `purse export --raw record.jsonl` wrote.
WITH messages AS (
    SELECT seq, lag(seq, 1, 0) OVER (ORDER BY seq) AS before
    FROM read_json('record.jsonl', format = 'newline_delimited', columns = {seq: 'BIGINT'})
    WHERE seq IS NOT NULL
)
SELECT before + 1 AS first_missing, seq - 1 AS last_missing
FROM messages
WHERE seq <> before + 1
ORDER BY seq;
