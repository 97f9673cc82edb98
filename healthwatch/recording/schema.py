"""The tables of a run file. docs/recording.md explains them to readers of the file."""

from __future__ import annotations

FORMAT = 2

TABLES = """
CREATE TABLE IF NOT EXISTS meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL                 -- JSON
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS attempts (
  attempt INTEGER PRIMARY KEY,
  started REAL NOT NULL,              -- unix seconds
  ended REAL,                         -- NULL: still running, or killed
  reason TEXT,
  meta TEXT NOT NULL                  -- JSON: rules as loaded, config digest, ...
);

CREATE TABLE IF NOT EXISTS series (
  id INTEGER PRIMARY KEY,
  metric TEXT NOT NULL,
  labels TEXT NOT NULL                -- JSON: one [[name, value], ...] a value of the blob
);

CREATE TABLE IF NOT EXISTS frames (
  id INTEGER PRIMARY KEY,             -- in the order they were closed
  attempt INTEGER NOT NULL,
  step INTEGER NOT NULL,
  time REAL NOT NULL,
  micro_steps INTEGER                 -- NULL: the step has step-level samples alone
);

CREATE TABLE IF NOT EXISTS samples (
  frame INTEGER NOT NULL,
  tick INTEGER NOT NULL,
  micro_step INTEGER,                 -- from 0; NULL: the step's end
  series INTEGER NOT NULL,
  dtype TEXT NOT NULL,                -- numpy's, as '<f4'
  data BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS samples_by_frame ON samples (frame);

CREATE TABLE IF NOT EXISTS clock_events (
  id INTEGER PRIMARY KEY,
  attempt INTEGER NOT NULL,
  step INTEGER NOT NULL,              -- the last one that has ended
  since REAL NOT NULL,                -- unix seconds: when it ended
  time REAL NOT NULL                  -- when the rules on the wall clock were evaluated
);

CREATE TABLE IF NOT EXISTS reloads (
  id INTEGER PRIMARY KEY,
  attempt INTEGER NOT NULL,
  step INTEGER NOT NULL,              -- the first one that the new rules judged
  time REAL NOT NULL,                 -- of its frame
  meta TEXT NOT NULL                  -- JSON: as of an attempt
);

CREATE TABLE IF NOT EXISTS changes (
  id INTEGER PRIMARY KEY,
  attempt INTEGER NOT NULL,
  step INTEGER NOT NULL,
  time REAL NOT NULL,
  clock REAL NOT NULL,                -- seconds of the run's own time
  rule TEXT NOT NULL,
  before TEXT NOT NULL,
  after TEXT NOT NULL,
  reason TEXT NOT NULL,
  alerts TEXT NOT NULL                -- JSON: [labels, micro-step from 1 or null, value] of each alert
);

CREATE VIEW IF NOT EXISTS transitions AS
SELECT c.id * 1000000 + a.key AS id, attempt, step, time, clock, rule, json_extract(a.value, '$[0]') AS labels,
  before, after, reason, json_extract(a.value, '$[1]') AS micro_step, json_extract(a.value, '$[2]') AS value
FROM changes c, json_each(c.alerts) a;

CREATE TABLE IF NOT EXISTS incidents (
  id TEXT PRIMARY KEY,
  rule TEXT NOT NULL,
  severity TEXT NOT NULL,
  opened INTEGER NOT NULL,
  ended INTEGER,
  incident TEXT NOT NULL              -- JSON
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS captures (
  folder TEXT PRIMARY KEY,
  step INTEGER NOT NULL,              -- of the commit that brought it
  capture TEXT NOT NULL               -- JSON
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS outbox (
  id TEXT PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('pending', 'accepted')),
  receiver TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  step INTEGER NOT NULL,
  accepted REAL,                      -- unix seconds
  notice TEXT NOT NULL                -- JSON
);

CREATE TABLE IF NOT EXISTS acceptances (
  notice TEXT NOT NULL,
  target INTEGER NOT NULL,            -- which of the receiver's URLs, from 1
  time REAL NOT NULL,
  PRIMARY KEY (notice, target)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS state (
  key TEXT PRIMARY KEY,
  value BLOB NOT NULL                 -- MessagePack: where alerting stands, for the next attempt alone
) WITHOUT ROWID;
"""

ADD_SERIES = "INSERT INTO series (id, metric, labels) VALUES (?, ?, ?)"
ADD_FRAME = "INSERT INTO frames (id, attempt, step, time, micro_steps) VALUES (?, ?, ?, ?, ?)"
ADD_SAMPLES = "INSERT INTO samples (frame, tick, micro_step, series, dtype, data) VALUES (?, ?, ?, ?, ?, ?)"
ADD_CLOCK_EVENT = "INSERT INTO clock_events (attempt, step, since, time) VALUES (?, ?, ?, ?)"
ADD_RELOAD = "INSERT INTO reloads (attempt, step, time, meta) VALUES (?, ?, ?, ?)"
ADD_CHANGE = (
    "INSERT INTO changes (attempt, step, time, clock, rule, before, after, reason, alerts)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
PUT_INCIDENT = (
    "INSERT OR REPLACE INTO incidents (id, rule, severity, opened, ended, incident) VALUES (?, ?, ?, ?, ?, ?)"
)
PUT_CAPTURE = "INSERT OR REPLACE INTO captures (folder, step, capture) VALUES (?, ?, ?)"
PUT_NOTICE = (
    "INSERT OR IGNORE INTO outbox (id, state, receiver, attempt, step, notice) VALUES (?, 'pending', ?, ?, ?, ?)"
)
ADD_ACCEPTANCE = "INSERT OR IGNORE INTO acceptances (notice, target, time) VALUES (?, ?, ?)"
PUT_STATE = "INSERT OR REPLACE INTO state (key, value) VALUES (?, ?)"
DROP_STATE = "DELETE FROM state WHERE key = ?"
PENDING = """
SELECT o.notice, group_concat(a.target) FROM outbox o LEFT JOIN acceptances a ON a.notice = o.id
WHERE o.state = 'pending' GROUP BY o.rowid ORDER BY o.rowid
"""
ACCEPT_NOTICE = "UPDATE outbox SET state = 'accepted', accepted = ? WHERE id = ?"
BEGIN_ATTEMPT = "INSERT INTO attempts (attempt, started, meta) VALUES (?, ?, ?)"
END_ATTEMPT = "UPDATE attempts SET ended = ?, reason = ? WHERE attempt = ?"
