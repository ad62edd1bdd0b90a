#!/usr/bin/env python3
"""Verifies the tapes of a tape home: an independent reader of docs/format.md.

    python3 verify.py [--json] PATH      PATH: a tape home, or its tape.db

It shares no code with Tapedeck, needs Python 3.8 with its standard library (and SQLite 3.38), and writes nothing.
Exit codes: 0 all is well, 5 there are problems, 2 wrong usage, 3 there is no tape database of schema 1 to 6.

It reports the codes of the section "Verification" of the specification, for the same session and position as
`tape verify`. It leaves out what it cannot know from the specification alone: `view-contradicted` (the rules of
views). Every difference of a line of the graph file is `graph-differs`. Like `tape check`, it reports
`edge-on-one-side`, missing and changed tables, indexes and triggers, `graph-aside` and `database-missing`, too.
"""

import hashlib
import itertools
import json
import math
import os
import re
import sqlite3
import stat
import sys
import unicodedata
from datetime import datetime, timedelta, timezone

SCHEMA = 6
APPLICATION = 0x54415045
# Type, name and the first digits of the SHA-256 of the SQL of all tables, indexes and triggers.
TEXTS = (
    "trigger:entry_insert:1d3b51fa0000e47c trigger:entry_update:f63170c1f79d0ad3 "
    "trigger:entry_delete:f507ce5cf1acde2b trigger:tape_insert:3c315d8a2bbdd5ab "
    "trigger:tape_update:9e5d3092565e489d trigger:tape_delete:a6d0e015ab96180e "
    "trigger:blob_update:183ae7378cd7c4b9 trigger:blob_delete:187de2c8d6f54288 "
    "trigger:blob_insert:114017712de1fb8a trigger:blob_ref_update:02b3c0cec53254fc "
    "trigger:blob_ref_delete:ca0e04d867fe6c68 trigger:lineage_insert:4ead1fb0acbd84e0 "
    "trigger:lineage_update:52271bc255705150 trigger:lineage_delete:85364019dea7f7db "
    "table:home:fae0186696887055 table:tape:b1a1b4f1484498e5 table:entry:e32fa666f17bb522 "
    "table:open_calls:b0f6c57e8a262739 table:lineage:d0d01f09422ac32d table:lease:70e2ae45ce9bec96 "
    "table:inbox:b462a748a09f53eb table:alias:c3995ae4687df688 table:touch:83fa7b4a49fd5a1f "
    "table:blob:c608029a269fcf94 table:blob_ref:5997f7e4759e379d table:stream_chunk:db423695a0f58823 "
    "table:entry_fts:3e7e13806b094144 table:open_run:4db8a7704d91ca8d table:usage:6024d5f1f884a0f9 "
    "table:adopted:84e770425b72a549 table:absent:9f19c2189dcf9ffb "
    "index:tape_spawn:8863d5100f191401 index:tape_ordinal:d31db0896abb32a4 "
    "index:tape_name_key:1c3f021494147504 index:tape_unfinished:ad2b5bbb1abc8b9f "
    "index:entry_key:6222a85d8666692a index:entry_turn:6dac24532ca33fd6 index:entry_name:0468747733efcf0f "
    "index:lineage_tape:f0df5a55e6d6d44c index:alias_name_key:0f903eb0ad17aabb "
    "index:alias_tape:31b7e47d97c4d305 index:entry_kind:08ad14cfadd5c83c "
    "index:open_calls_open:880894853a3fee6d index:tape_running:fba2528e6bc58cec "
    "index:tape_spoken:cb4c02f4437c108d index:lineage_link:9c98aad9a33ce0ed "
)
# White space, as `trim` of JavaScript removes it.
SPACE = "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
PIECES_BACK = 50
IS_OBJECT = "CASE WHEN json_valid(meta) THEN json_type(meta) = 'object' ELSE 0 END"
IS_READABLE = "((payload IS NULL OR json_valid(payload)) AND (meta IS NULL OR %s))" % IS_OBJECT
# The rules by which the texts of merges are collected.
TEXT_VERSION = 1


# Texts and hashes.


def whole_pairs(text):
    """Joins halves of surrogate pairs that meet, and replaces lone ones by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def sha256(data):
    """SHA-256 in lower-case hex, of bytes or of the UTF-8 of a text."""
    return hashlib.sha256(data if isinstance(data, bytes) else whole_pairs(data).encode("utf-8")).hexdigest()


def length(text):
    """The length in UTF-16 code units, which the specification calls characters."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def json_text(value):
    """The text of `JSON.stringify`, which escapes lone surrogates."""
    pairs = compact(value).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return re.sub("[\ud800-\udfff]", lambda half: "\\u%04x" % ord(half[0]), pairs)


def parsed(text):
    """A JSON object, or an empty one for anything else: a changed text is reported by its hash."""
    try:
        value = json.loads(text) if text is not None else None
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {}


def object_in(value, field):
    inner = value.get(field)
    return inner if isinstance(inner, dict) else {}


def raw_field(text, field):
    """The text of one field's value in the compact text of an object, as it is stored; None without it."""
    decoder = json.JSONDecoder()
    at = 1
    while at < len(text) and text[at] != "}":
        name, at = decoder.raw_decode(text, at)
        _, end = decoder.raw_decode(text, at + 1)
        if name == field:
            return text[at + 1 : end]
        at = end + 1 if text[end : end + 1] == "," else end
    return None


def iso(ms):
    try:
        time = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=ms)
    except OverflowError:
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%S.") + "%03dZ" % (ms % 1000)


def source_time(meta):
    """When an entry of an import happened at its source, in milliseconds; None for other entries."""
    stamp = meta.get("timestamp")
    if meta.get("source") not in ("import", "merge") or not isinstance(stamp, str):
        return None
    form = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)", stamp)
    if form is None:
        return None
    try:
        offset = "+00:00" if form[3] == "Z" else form[3]
        time = datetime.strptime(form[1] + offset, "%Y-%m-%dT%H:%M:%S%z")
    except ValueError:
        return None
    seconds = (time - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(seconds=1)
    return seconds * 1000 + int(((form[2] or "") + "000")[:3])


def name_key(name):
    """The form in which names that look alike are equal."""

    def decoded(escapes):
        try:
            return bytes.fromhex(escapes[0].replace("%", "")).decode("utf-8")
        except UnicodeDecodeError:
            return escapes[0]

    text = unicodedata.normalize("NFC", re.sub(r"(?:%[89A-Fa-f][0-9A-Fa-f])+", decoded, name))
    return re.sub("[A-Z]", lambda letter: letter[0].lower(), text)


# The home.


class NotATape(Exception):
    """The file is a database of another program, or of another schema version."""


class Home:
    """The tables that are small enough to keep: tapes and lines. Entries are read tape by tape."""

    def __init__(self, path):
        self.db = sqlite3.connect("file:%s?mode=ro" % path.replace("%", "%25").replace("?", "%3f"), uri=True)
        self.db.isolation_level = None
        self.db.row_factory = sqlite3.Row
        self.db.text_factory = lambda data: data.decode("utf-8", "replace")
        self.db.execute("BEGIN")
        application, version = (self.db.execute("PRAGMA " + name).fetchone()[0] for name in ("application_id", "user_version"))
        if application != APPLICATION:
            raise NotATape("'%s' is no tape database" % path)
        if not 1 <= version <= SCHEMA:
            raise NotATape("'%s' cannot be verified: it has schema %d, and this program reads 1 to %d" % (path, version, SCHEMA))
        # Schema 1 has neither ordinals nor forms of names, and aliases have no realm.
        self.version = version
        self.problems = []
        self.tapes = {row["id"]: row for row in self.db.execute("SELECT * FROM tape ORDER BY id")}
        self.by_ulid = {row["ulid"]: row for row in self.tapes.values()}
        self.lines = [Line(row) for row in self.db.execute("SELECT * FROM lineage ORDER BY g")]
        self.lines_of = {}
        for line in self.lines:
            self.lines_of.setdefault(line.row["tape_id"], []).append(line)
        self.heads = {}

    def rows(self, sql, *values):
        return self.db.execute(sql, values)

    def one(self, sql, *values):
        return self.db.execute(sql, values).fetchone()

    def report(self, code, session, seq, message):
        self.problems.append({"code": code, "session": session, "seq": seq, "message": message})

    def is_adopted(self, tape, seq):
        """Whether a bundle brought an entry."""
        if self.version < 5:
            return False
        return self.one("SELECT 1 FROM adopted WHERE tape_id = ? AND ? BETWEEN from_seq AND to_seq", tape["id"], seq) is not None

    def lacks(self, tape, first, last):
        """Whether a bundle did not bring the content of an entry in a range."""
        if self.version < 5:
            return False
        return self.one("SELECT 1 FROM absent WHERE tape_id = ? AND seq BETWEEN ? AND ?", tape["id"], first, last) is not None

    def above(self, tape):
        """The parents of a tape, nearest first."""
        while tape is not None and tape["parent_id"] is not None and tape["parent_id"] < tape["id"]:
            tape = self.tapes.get(tape["parent_id"])
            if tape is not None:
                yield tape

    def is_lost(self, tape):
        """Whether the row of its parent is missing. Nothing else is said of such a session."""
        return tape["parent_id"] is not None and tape["parent_id"] not in self.tapes

    def owner(self, tape, seq):
        """The tape that stores a position of a session."""
        for one in [tape, *self.above(tape)]:
            if one["base_seq"] < seq:
                return one if seq > 0 else None
        return None

    def hash_at(self, tape, seq):
        owner = self.owner(tape, seq)
        row = owner and self.one("SELECT hash FROM entry WHERE tape_id = ? AND seq = ?", owner["id"], seq)
        return row["hash"].hex() if row else None

    def ref(self, tape):
        """What edges call a session: its id, if it is of another realm than the home's own."""
        base = self.one("SELECT value FROM home WHERE key = 'base'")
        return tape["name"] if tape["realm"] == (base["value"] if base else "tape") else tape["ulid"]

    def record_head(self, tape, seq, head, by):
        """Keeps a head that something recorded of a tape. `seq` is None where the position is not recorded."""
        if tape is not None and isinstance(head, str):
            self.heads.setdefault(tape["id"], []).append((seq, head, by))


class Line:
    """A line of the lineage. A line without its hash proves nothing, and is read as empty."""

    def __init__(self, row):
        self.row = row
        self.hash = sha256(row["line"])
        self.is_whole = self.hash == row["hash"].hex()
        self.fields = parsed(row["line"])
        self.proof = self.fields if self.is_whole else {}


# Recorded heads.


def last_of(bounds):
    is_pair = isinstance(bounds, list) and len(bounds) == 2 and type(bounds[1]) is int
    return bounds[1] if is_pair else None


def collect_heads(home):
    for line in home.lines:
        fields, row = line.proof, line.row
        by = "line %d of the lineage" % row["g"]
        tape = home.tapes.get(row["tape_id"])
        kind = fields.get("type")
        if tape is None or kind is None:
            continue
        if kind in ("merge", "discard"):
            last = last_of(fields.get("range"))
            if last is not None:
                home.record_head(tape, last, fields.get("child_head"), by)
            into = home.tapes.get(row["peer_id"])
            is_above = into is not None and any(one["id"] == into["id"] for one in home.above(tape))
            if is_above and type(fields.get("seq")) is int:
                seq = fields["seq"] + (1 if kind == "merge" else 0)
                home.record_head(into, seq, fields.get("parent_head"), by)
            continue
        home.record_head(tape, None, fields.get("child_head"), by)
        if kind == "fork" and fields.get("base") == tape["base_seq"]:
            parent = home.tapes.get(tape["parent_id"])
            if parent is not None and parent["id"] < tape["id"]:
                owner = home.owner(parent, tape["base_seq"])
                home.record_head(owner, tape["base_seq"], fields.get("parent_head"), by)
    for tape in home.tapes.values():
        collect_marked_heads(home, tape)
        collect_summary_heads(home, tape)


def merge_marks(home, tape):
    """The entries that have the name or the key of a mark."""
    return home.rows(
        "SELECT seq, kind, mark, name, key, payload FROM entry WHERE tape_id = ? AND"
        " ((key >= 'merge:' AND key < 'merge;') OR (name >= 'merge/' AND name < 'merge0' AND kind = 'anchor')) ORDER BY seq",
        tape["id"],
    ).fetchall()


def collect_marked_heads(home, tape):
    for mark in merge_marks(home, tape):
        by = "the mark %s@%d" % (tape["name"], mark["seq"])
        parts = (mark["key"] or "").split(":")
        if parts[0] != "merge" or len(parts) < 3:
            continue
        child = home.by_ulid.get(parts[1])
        # A bundle may have brought a mark of more than is here of its child.
        is_adopted = home.is_adopted(tape, mark["seq"])
        if child is None or all(one["id"] != tape["id"] for one in home.above(child)):
            continue
        if mark["payload"] is None:
            if not is_adopted:
                home.record_head(child, None, parts[2], by)
            continue
        state = object_in(parsed(mark["payload"]), "state")
        last = last_of(state.get("range"))
        if last is not None and not (is_adopted and last > child["head_seq"]):
            home.record_head(child, last, state.get("child_head"), by)


def collect_summary_heads(home, tape):
    summaries = home.rows(
        "SELECT seq, mark, payload FROM entry WHERE tape_id = ? AND (mark = 'boundary' OR name = 'context/not-compacted')",
        tape["id"],
    ).fetchall()
    for entry in summaries:
        payload = parsed(entry["payload"])
        told = object_in(object_in(payload, "state") if "state" in payload else payload, "summarizer")
        child = home.by_ulid.get(told.get("id")) if isinstance(told.get("id"), str) else None
        if child is not None and child["kind"] == "summarizer" and child["parent_id"] == tape["id"]:
            home.record_head(child, None, told.get("head"), "the summary %s@%d" % (tape["name"], entry["seq"]))


# One tape: its chain, and what is compared with its entries.


def verify_tape(home, tape):
    name, head = tape["name"], tape["head_seq"]
    reported = set()
    is_chained, is_whole = True, True

    def report(code, seq, message):
        nonlocal is_chained, is_whole
        is_chained = is_chained and code not in ("entry-missing", "chain-broken")
        is_whole = is_whole and code not in ("entry-changed", "body-erased", "database-damaged")
        reported.add(seq)
        home.report(code, name, seq, message)

    if base_hash(home, tape) != tape["base_hash"].hex():
        report("base-wrong", tape["base_seq"], "%s does not continue from its parent" % name)
    known, anywhere = {}, {}
    for seq, recorded, by in home.heads.get(tape["id"], []):
        (anywhere if seq is None else known).setdefault(recorded if seq is None else seq, []).append((recorded, by))
    contradicted, copies = [], []
    calls, touches = Calls(home, tape), Touches(home, tape)
    spoken, is_erased = None, False
    said = Conversation()
    expected, previous = tape["base_seq"] + 1, [tape["base_hash"].hex()]
    epoch = 0
    for entry in home.rows(
        "SELECT *, %s AS is_readable FROM entry WHERE tape_id = ? AND seq > ? AND seq <= ? ORDER BY seq" % IS_READABLE, tape["id"], tape["base_seq"], head
    ):
        seq, stored = entry["seq"], entry["hash"].hex()
        if seq != expected:
            report("entry-missing", expected, "%s@%d is missing" % (name, expected))
            expected, previous = seq, []
        previous = verify_entry(home, tape, entry, previous, report)
        if entry["v"] != 1 and seq not in reported:
            report("row-changed", seq, "the v of %s@%d is not 1" % (name, seq))
        if epoch is not None and not epoch <= entry["epoch"] <= tape["epoch"]:
            if seq not in reported:
                report("row-changed", seq, "the epoch of %s@%d does not follow" % (name, seq))
            epoch = None
        epoch = None if epoch is None else entry["epoch"]
        anywhere.pop(stored, None)
        others = [by for recorded, by in known.get(seq, []) if recorded != stored]
        if others:
            contradicted.append((seq, "%s@%d is another entry than %s recorded" % (name, seq, ", ".join(others))))
        calls.saw(entry)
        touches.saw(entry)
        copied = copy_fault(home, tape, entry)
        if copied is not None:
            copies.append((seq, "%s@%d %s" % (name, seq, copied)))
        said.saw(entry)
        if entry["kind"] == "message":
            if entry["payload"] is None:
                is_erased = True
            else:
                time = source_time(parsed(entry["meta"]))
                spoken = max(spoken or 0, entry["at"] if time is None else time)
        expected += 1
    if expected != head + 1:
        report("entry-missing", expected, "%s@%d is missing: the head is at %d" % (name, expected, head))
    elif tape["head_hash"].hex() not in previous:
        report("head-wrong", head, "the recorded head of %s is not the hash of its last entry" % name)
    stray = home.one(
        "SELECT seq FROM entry WHERE tape_id = ? AND (seq <= ? OR seq > ?) ORDER BY seq > ?, seq LIMIT 1",
        tape["id"], tape["base_seq"], head, head,
    )
    if stray is not None:
        report("head-wrong", stray["seq"], "%s@%d is outside the positions of its tape" % (name, stray["seq"]))
    later = sorted(seq for seq in known if seq > head)
    if later:
        contradicted.append((None, "%s ends at %d, but it once went on to %d" % (name, head, later[-1])))
    for seq, message in contradicted:
        code, at = ("head-contradicted", seq) if seq is not None else ("tail-missing", head + 1)
        if at not in reported:
            home.report(code, name, at, message)
    if anywhere and is_chained and None not in reported:
        by = ", ".join(by for heads in anywhere.values() for _, by in heads)
        home.report("head-contradicted", name, None, "no entry of %s has the head that %s recorded" % (name, by))
    for seq, message in [*copies, *start_faults(home, tape)]:
        if seq not in reported:
            home.report("record-contradicted", name, seq, message)
    if not is_chained:
        return
    calls.compare()
    if is_whole:
        touches.compare()
    last = tape["last_message_at"] if home.version >= 2 else spoken
    is_behind = spoken is not None and (-1 if last is None else last) < spoken
    if home.version >= 2 and (is_behind if is_erased else spoken != last):
        home.report("row-changed", name, None, "last_message_at of %s is not that of its messages" % name)
    if home.version >= 3:
        is_recorded = home.one("SELECT 1 FROM open_run WHERE tape_id = ?", tape["id"]) is not None
        if is_recorded != is_run_open(home, tape):
            home.report("open-run-differs", name, None, "the open run of %s differs from its entries" % name)
        if not same_usage(home, tape):
            home.report("usage-differs", name, None, "the recorded usage of %s differs from its entries" % name)
    if home.version >= 4 and is_whole and not said.allows(tape):
        home.report("messages-differ", name, None, "the recorded number of messages of %s differs from its entries" % name)


class Conversation:
    def __init__(self):
        self.count, self.last, self.erased, self.is_last_erased = 0, None, 0, False

    def saw(self, entry):
        if entry["kind"] != "message":
            return
        if entry["payload"] is None:
            self.erased, self.is_last_erased = self.erased + 1, True
            return
        role = parsed(entry["payload"]).get("role")
        if role not in ("user", "assistant") or parsed(entry["meta"]).get("context") is False:
            return
        if role == "user" or self.last != "assistant":
            self.count += 1
        self.last, self.is_last_erased = role, False

    def allows(self, tape):
        if not self.count <= tape["message_count"] <= self.count + 2 * self.erased:
            return False
        return self.is_last_erased or tape["last_speaker"] == self.last


TOKENS = (("input", "input"), ("output", "output"), ("reasoning", "reasoning"), ("cache_read", "cacheRead"), ("cache_write", "cacheWrite"))
USAGE = ("first_seq", "steps", *(column for column, _ in TOKENS), "cost", "last_seq", "last_tokens")


def same_usage(home, tape):
    found = {}
    for entry in home.rows("SELECT seq, kind, payload, meta FROM entry WHERE tape_id = ? ORDER BY seq", tape["id"]):
        meta, is_message = parsed(entry["meta"]), entry["kind"] == "message"
        if entry["payload"] is None or not isinstance(meta.get("usage"), dict) or not (is_message or entry["kind"] == "compaction"):
            continue
        if is_message and parsed(entry["payload"]).get("role") != "assistant" and meta.get("source") != "merge":
            continue
        model = meta["model"] if isinstance(meta.get("model"), str) else ""
        row = found.setdefault(model, dict.fromkeys(USAGE, 0))
        counts = [(column, token_count(meta["usage"].get(field))) for column, field in TOKENS]
        for column, count in counts:
            row[column] += count
        row["first_seq"] = row["first_seq"] or entry["seq"]
        row["steps"] += 1
        row["cost"] += meta["cost"] if is_number(meta.get("cost")) else 0
        if is_message:
            row["last_seq"], row["last_tokens"] = entry["seq"], sum(count for _, count in counts)
    stored = {row["model"]: row for row in home.rows("SELECT * FROM usage WHERE tape_id = ?", tape["id"])}
    if stored.keys() != found.keys():
        return False
    return all(is_close(stored[model][column] or 0, row[column]) for model, row in found.items() for column in USAGE)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def token_count(value):
    return value if is_number(value) and 0 < value <= 9007199254740991 else 0


def is_close(a, b):
    return abs(a - b) <= 1e-9 * max(1, abs(a), abs(b))


RUN_NOTES = ("run/interrupted", "run/aborted", "run/error", "run/halted", "run/waiting")


def is_run_open(home, tape):
    for entry in home.rows("SELECT kind, name, payload, meta FROM entry WHERE tape_id = ? ORDER BY seq DESC", tape["id"]):
        is_open = opens_run(entry["kind"], entry["name"], parsed(entry["payload"]), parsed(entry["meta"]))
        if is_open is not None:
            return is_open
    return False


def opens_run(kind, name, payload, meta):
    """Whether a run is open after an entry; None when the entry does not decide."""
    if kind == "event":
        return name == "run/interrupted" if name in RUN_NOTES else None
    if kind == "rewind":
        return False
    is_of_run = "run" in meta
    if kind == "tool-result":
        output = object_in(payload, "output")
        is_repair = meta.get("source") == "repair"
        if is_repair and output.get("type") == "error-text" and str(output.get("value")).endswith(": the run was aborted."):
            return None
        return True if is_of_run or is_repair else None
    if kind != "message":
        return None
    if payload.get("role") == "assistant":
        return is_of_run and (meta.get("partial") is True or len(client_calls(payload)) > 0)
    return True if is_of_run or "resends" in meta else None


def base_hash(home, tape):
    if tape["parent_id"] is None:
        return sha256(compact(["tape.genesis.v1", tape["ulid"]]))
    parent = home.tapes.get(tape["parent_id"])
    return home.hash_at(parent, tape["base_seq"]) if parent is not None else None


def verify_entry(home, tape, entry, previous, report):
    """Verifies one entry; returns the hashes that the next one may follow, so that damage is reported once."""
    seq, stored, body = entry["seq"], entry["hash"].hex(), entry["body_hash"].hex()
    at = "%s@%d" % (tape["name"], seq)
    missing = [entry[name] is None for name in ("payload", "meta", "salt")]
    if all(missing):
        erased = "SELECT 1 FROM entry WHERE tape_id = ? AND mark = 'redaction' AND ref = ?"
        if home.one(erased, tape["id"], seq) is None and not home.lacks(tape, seq, seq):
            report("body-erased", seq, "the body of %s was erased without a redaction" % at)
    elif missing[0] or missing[2] or sha256(entry["salt"].hex() + entry["payload"] + "\n" + (entry["meta"] or "")) != body:
        report("entry-changed", seq, "the body of %s was changed" % at)
        return [stored]
    elif not entry["is_readable"]:
        report("database-damaged", seq, "the stored text of %s is not JSON, or its meta is not an object" % at)
    elif '"type":"blob"' in entry["payload"]:
        for blob in blob_hashes(json.loads(entry["payload"])):
            verify_blob(home, entry, blob, lambda why: report("blob-changed", seq, "the bytes of %s %s" % (at, why)))
    fields = [entry[name] for name in ("seq", "kind", "mark", "name", "ref", "at", "key")]
    computed = [sha256(compact(["tape.entry.v1", tape["ulid"], *fields, body, before])) for before in previous]
    if not computed or stored in computed:
        return [stored]
    report("chain-broken", seq, "%s does not follow from the entry before it, or was changed" % at)
    return [stored, computed[-1]]


def blob_hashes(value):
    """The blobs that a payload refers to. What only looks like a reference is kept in one of form `json`."""
    if isinstance(value, list):
        return {blob for item in value for blob in blob_hashes(item)}
    if not isinstance(value, dict):
        return set()
    if value.get("type") == "blob":
        form, blob = value.get("as"), value.get("hash")
        if form == "json":
            return set()
        if form in ("bytes", "base64", "text", "value") and re.fullmatch("[0-9a-f]{64}", str(blob)):
            return {blob}
    return {blob for item in value.values() for blob in blob_hashes(item)}


def verify_blob(home, entry, blob, report):
    key = bytes.fromhex(blob)
    row = home.one("SELECT bytes FROM blob WHERE hash = ?", key)
    if row is None:
        report("are missing: " + blob)
    elif sha256(bytes(row["bytes"])) != blob:
        report("were changed: " + blob)
    elif home.one("SELECT 1 FROM blob_ref WHERE hash = ? AND entry_id = ?", key, entry["id"]) is None:
        report("are not kept for it: " + blob)


def client_calls(payload):
    """The ids of an assistant message's calls, without those that the provider ran."""
    content = payload.get("content")
    if payload.get("role") != "assistant" or not isinstance(content, list):
        return []
    return [
        part["toolCallId"]
        for part in content
        if isinstance(part, dict)
        and part.get("type") == "tool-call"
        and part.get("providerExecuted") is not True
        and isinstance(part.get("toolCallId"), str)
    ]


def list_of(calls):
    """The call ids of a row: their texts can be escaped in more than one way."""
    try:
        return json.loads(calls)
    except (ValueError, RecursionError):
        return calls


class Calls:
    """The open calls that follow from the entries of a tape. Erased entries leave their closed batch as stored."""

    def __init__(self, home, tape):
        self.home, self.tape = home, tape
        rows = home.rows("SELECT * FROM open_calls WHERE tape_id = ? ORDER BY from_seq", tape["id"])
        self.stored = [(row["from_seq"], row["to_seq"], row["calls"]) for row in rows]
        self.found = {}
        self.start, self.open = None, []
        self.taken_to = 0
        self.unknown, self.unknown_in = 0, None

    def saw(self, entry):
        seq, kind = entry["seq"], entry["kind"]
        if seq <= self.taken_to or kind not in ("message", "tool-result", "rewind"):
            return
        if entry["payload"] is None and kind != "rewind":
            for row in self.stored:
                if row[1] is not None and row[0] < seq <= row[1] + 1:
                    self.start, self.open, self.taken_to = None, [], row[1] + 1
                    self.found[row[0]] = row
                    return
            if kind != "tool-result" or self.start is None:
                return
            # Whose result it is, is not known: the last one ends the batch, whichever calls are left.
            self.unknown = self.unknown + 1 if self.unknown_in == self.start else 1
            self.unknown_in = self.start
            if self.unknown >= len(self.open):
                self.open = []
                self.found[self.start] = (self.start, seq - 1, "[]")
                self.start = None
            return
        if kind == "message":
            calls = client_calls(parsed(entry["payload"]))
            if not calls:
                return
            self.start = seq - 1 if self.start is None else self.start
            self.open = self.open + calls
        elif self.start is None:
            return
        elif kind == "rewind":
            self.open = []
        else:
            call = parsed(entry["payload"]).get("toolCallId")
            if call not in self.open:
                return
            self.open.remove(call)
            if self.unknown_in == self.start and self.unknown >= len(self.open):
                self.open = []
        self.found[self.start] = (self.start, None if self.open else seq - 1, compact(self.open))
        self.start = self.start if self.open else None

    def compare(self):
        name = self.tape["name"]
        if [(a, b, list_of(c)) for a, b, c in self.stored] != [(a, b, list_of(c)) for a, b, c in self.found.values()]:
            self.home.report("open-calls-differ", name, None, "the open calls of %s differ from its entries" % name)
        settled = self.tape["head_seq"] if self.start is None else self.start
        if settled != self.tape["settled_seq"]:
            self.home.report("row-changed", name, None, "%s is settled up to %d" % (name, settled))


def copy_fault(home, tape, entry):
    """What an entry repeats, and is recorded otherwise."""
    if entry["kind"] == "compaction" and is_other_summary(home, tape, object_in(parsed(entry["payload"]), "state")):
        return "has another summary than its summarizer wrote"
    field = {"rewind": "to", "redaction": "seq"}.get(entry["mark"])
    if field is not None and entry["payload"] is not None and parsed(entry["payload"]).get(field) != entry["ref"]:
        return "refers to @%s, and its content names another position" % entry["ref"]
    return None


def is_other_summary(home, tape, state):
    """Whether a compaction has another summary than the answers of its summarizer give."""
    summary, kind = state.get("summary"), state.get("compaction_type")
    read, modified = state.get("read_files"), state.get("modified_files")
    ulid = object_in(state, "summarizer").get("id")
    child = home.by_ulid.get(ulid) if isinstance(ulid, str) else None
    is_run = isinstance(summary, str) and isinstance(kind, str) and isinstance(read, list) and isinstance(modified, list)
    if not is_run or child is None or child["parent_id"] != tape["id"] or child["kind"] != "summarizer":
        return False
    answers = []
    for row in home.rows("SELECT payload, meta FROM entry WHERE tape_id = ? AND kind = 'message' ORDER BY seq", child["id"]):
        message = parsed(row["payload"])
        if not isinstance(message.get("content"), list) or parsed(row["meta"]).get("content_left_out") is True:
            return False
        if message.get("role") == "assistant":
            answers.append(assistant_text(message).strip(SPACE))
    tags = [files_tag("read-files", read), files_tag("modified-files", modified)]
    starts = range(len(answers)) if kind == "chunked" else range(len(answers) - 1, len(answers))
    texts = ["\n\n".join([*answers[start:], *filter(None, tags)]) for start in starts]
    return bool(answers) and summary not in texts


def files_tag(name, paths):
    """The files at the end of a summary."""

    def line(path):
        is_plain = re.search("[<>\x00-\x1f\x7f-\x9f]", str(path)) is None
        return str(path) if is_plain else json_text(path).replace("<", "\\u003c")

    return "<%s>\n%s\n</%s>" % (name, "\n".join(map(line, paths)), name) if paths else ""


def start_faults(home, tape):
    """What the first entries of a fork repeat, and is recorded otherwise."""
    parent = home.tapes.get(tape["parent_id"])
    if parent is None or parent["id"] >= tape["id"]:
        return
    first = tape["base_seq"] + 1
    sql = "SELECT kind, mark, name, payload FROM entry WHERE tape_id = ? AND seq = ?"
    start, second = home.one(sql, tape["id"], first), home.one(sql, tape["id"], first + 1)
    if start is not None and start["name"] == "fork/start" and start["payload"] is not None:
        is_known, source = state_source(home, tape, parent, sql)
        state = parsed(start["payload"]).get("state")
        is_none = state is None and tape["floor_seq"] == tape["base_seq"]
        if is_known and not is_none and compact(state) != compact(source):
            yield first, "%s@%d began with another state than its parent has" % (tape["name"], first)
    line = next((line for line in home.lines_of.get(tape["id"], []) if line.row["type"] == "fork"), None)
    if second is not None and line is not None and line.is_whole and is_other_intention(second, line.fields.get("intention")):
        yield first + 1, "%s@%d is another intention than the lineage recorded" % (tape["name"], first + 1)


def state_source(home, tape, parent, sql):
    """Whether it is known with which state a fork was made, and that state."""
    name = tape["from_anchor"]
    if name is None and parent["parent_id"] is None or name is not None and name.startswith("@"):
        return True, None
    if name is None:
        source = home.one(sql, parent["id"], parent["base_seq"] + 1)
        is_one = source is not None and source["name"] == "fork/start"
    elif tape["floor_seq"] == tape["base_seq"]:
        return False, None
    else:
        owner = home.owner(parent, tape["floor_seq"])
        source = owner and home.one(sql, owner["id"], tape["floor_seq"])
        is_one = source is not None
        if is_one and (source["mark"] not in ("anchor", "boundary") or source["name"] != name):
            return True, {"from_anchor": name}
    if not is_one or source["payload"] is None:
        return False, None
    state = parsed(source["payload"]).get("state")
    return True, state if isinstance(state, dict) else None


def is_other_intention(entry, told):
    """Whether an entry is not the intention of a line, or one where the line has none."""
    is_one = entry["kind"] == "anchor" and entry["name"] == "intention"
    if not isinstance(told, dict) or not is_one:
        return is_one or isinstance(told, dict)
    if entry["payload"] is None:
        return False
    state = object_in(parsed(entry["payload"]), "state")
    names = {"nextSteps": "next_steps", "contextSummary": "context_summary", "triggerOnComplete": "trigger_on_complete"}
    if any(told.get(field) != cut_field(state.get(field)) for field in names.values()):
        return True
    given = [(name, state[field]) for name, field in names.items() if state.get(field) is not None]
    return all(sha256(json_text(dict(order))) != told.get("digest") for order in itertools.permutations(given))


def cut_field(text):
    """The first 200 UTF-16 code units of a text."""
    if not isinstance(text, str):
        return None
    return text.encode("utf-16-le", "surrogatepass")[:400].decode("utf-16-le", "replace")


class Touches:
    """The rows of `touch` that follow from the entries of a tape."""

    def __init__(self, home, tape):
        self.home, self.tape = home, tape
        self.rows = {}
        for row in home.rows("SELECT seq, what, wrote, via FROM touch WHERE tape_id = ?", tape["id"]):
            self.rows.setdefault(row["seq"], {})[row["what"]] = (row["wrote"], row["via"])
        self.is_wrong = False

    def saw(self, entry):
        kind, key = entry["kind"], entry["key"] or ""
        if entry["payload"] is None or kind not in ("anchor", "tool-result"):
            return
        if kind == "anchor" and key.startswith("merge:"):
            self.saw_merge(entry)
            return
        touched = {}
        if kind == "tool-result":
            paths = object_in(parsed(entry["meta"]), "paths")
            for field, wrote in (("write", 1), ("read", 0)):
                for path in paths[field] if isinstance(paths.get(field), list) else []:
                    if isinstance(path, str):
                        touched.setdefault("file:" + whole_pairs(path), (wrote, None))
        elif re.match(r"(?:session|fork|merge)/|intention\Z", entry["name"] or "") is None:
            for field in object_in(parsed(entry["payload"]), "state"):
                if field != "summary":
                    touched.setdefault("state:" + whole_pairs(field), (1, None))
        if self.rows.pop(entry["seq"], {}) != touched:
            self.is_wrong = True

    def saw_merge(self, entry):
        """A merge brings what the child touched in its range, and the files of its patch."""
        found = self.rows.pop(entry["seq"], {})
        state = object_in(parsed(entry["payload"]), "state")
        child = self.home.by_ulid.get(state.get("child")) if isinstance(state.get("child"), str) else None
        if child is None:
            return
        bounds = state.get("range")
        first, last = bounds if last_of(bounds) is not None and type(bounds[0]) is int else (0, -1)
        sql = "SELECT what, max(wrote) AS wrote FROM touch WHERE tape_id = ? AND seq BETWEEN ? AND ? GROUP BY what"
        brought = {row["what"]: (row["wrote"], child["name"]) for row in self.home.rows(sql, child["id"], first, last)}
        files = object_in(state, "artifact").get("files")
        for file in files if isinstance(files, list) and state.get("strategy") != "discard" else []:
            if isinstance(file, dict) and isinstance(file.get("path"), str):
                for path in (file["path"], file.get("from")):
                    if isinstance(path, str):
                        brought.setdefault("file:" + whole_pairs(path), (1, child["name"]))
        erased = "SELECT 1 FROM entry WHERE tape_id = ? AND mark = 'redaction' AND ref BETWEEN ? AND ?"
        is_known = not self.home.lacks(child, first, last)
        if is_known and self.home.one(erased, child["id"], first, last) is None:
            self.is_wrong = self.is_wrong or found != brought
        elif any(found.get(what, (0, None))[1] != child["name"] for what in brought):
            self.is_wrong = True

    def compare(self):
        if self.is_wrong or self.rows:
            name = self.tape["name"]
            self.home.report("row-changed", name, None, "the recorded touches of %s differ from its entries" % name)


# Values beside the tapes: the lineage, the rows, aliases.


# The same on every line about a session; the parent is that of the tree in a link.
REPEATED = ("session_id", "from_anchor", "created_at", "tape", "kind")
OF_PARENT = ("parent_session_id", "parent")
AXES = ("lifecycle", "task", "delivery")
# What the acts set that have one value to set.
SETS = {"archive": ("lifecycle", "archived"), "merge": ("delivery", "merged"), "discard": ("delivery", "discarded")}


def line_faults(line, into, told, is_complete):
    """The fields of a line that contradict each other, or what `told`, the identity and state of earlier lines, has."""
    identity, before = told or (None, None)
    wrong = [] if line.get("v") == 1 else ["v"]
    is_link = line.get("type") == "link"
    same = REPEATED + (() if is_link else OF_PARENT)
    wrong += [field for field in same if identity is not None and identity.get(field) != line.get(field)]
    wrong += ["parent_session_id"] if is_link and line.get("parent_session_id") != into else []
    state = [line.get(axis) for axis in AXES]
    last = next((value for value in reversed(state) if value is not None), None)
    wrong += [] if line.get("status") == last else ["status"]
    wrong += [] if line.get("into_session_id") == (into if "into" in line else None) else ["into_session_id"]
    kind = line.get("type")
    if not is_complete:
        return wrong
    if told is None:
        wrong += [] if kind == ("session" if line.get("parent") is None else "fork") else ["type"]
        return wrong + ([] if line.get("delivery") is None else ["delivery"])
    if kind in ("session", "fork"):
        return wrong + ([] if before is None else ["type"])
    axis, value = SETS.get(kind, (None, None))
    other = [one for one, found in zip(AXES, state) if one == axis and found != value]
    if before is None:
        return wrong + other
    moved = [one for one, was, found in zip(AXES, before, state) if one != axis and was != found]
    is_status = kind == "status" and len(moved) == 1 and moved[0] != "delivery"
    return wrong + ([] if is_status else other + moved)


def verify_lineage(home):
    prevs, expected = ["0" * 64], 1
    told, is_complete = {}, True
    for line in home.lines:
        row, fields = line.row, line.fields
        tape, peer = home.tapes.get(row["tape_id"]), home.tapes.get(row["peer_id"])
        columns = (row["event_id"], row["type"], tape and tape["ulid"], peer and peer["ulid"], row["seq"], row["to_seq"])
        bounds = fields.get("range")
        into = fields.get("into")
        told_columns = (
            fields.get("event_id"),
            fields.get("type"),
            fields.get("session"),
            fields.get("parent") if into is None else into,
            fields.get("seq"),
            bounds[1] if isinstance(bounds, list) else None,
        )
        why = None
        is_sound = line.is_whole and columns == told_columns and (row["g"] != expected or fields.get("prev") in prevs)
        if row["g"] != expected:
            is_complete = False
            why = "line %d is missing" % expected
        elif not line.is_whole or fields.get("prev") not in prevs:
            why = "line %d does not follow, or was changed" % row["g"]
        elif columns != told_columns:
            why = "line %d differs from the columns beside it" % row["g"]
        if why is not None:
            home.report("lineage-broken", None, None, why)
        before = told.get(row["tape_id"])
        identity = before and before[0]
        if is_sound:
            wrong = line_faults(fields, peer and peer["name"], before, is_complete)
            if wrong:
                home.report("lineage-broken", None, None, "line %d is contradicted: %s" % (row["g"], ", ".join(wrong)))
            is_link = fields.get("type") == "link"
            told[row["tape_id"]] = (identity or (None if is_link else fields), [fields.get(axis) for axis in AXES])
        else:
            told[row["tape_id"]] = (identity, None)
        prevs = [line.hash, row["hash"].hex()]
        expected = row["g"] + 1


def verify_row(home, tape):
    lines = home.lines_of.get(tape["id"], [])
    if any(not line.is_whole for line in lines):
        return
    name = tape["name"]
    if not lines:
        is_whole = [line.row["g"] for line in home.lines] == list(range(1, len(home.lines) + 1))
        if tape["lifecycle"] != "staging" and is_whole:
            home.report("row-changed", name, None, "the lineage has no line for %s" % name)
        return
    parent = home.tapes.get(tape["parent_id"])
    version = "" if tape["incarnation"] == 1 else "~%d" % tape["incarnation"]
    made = {
        "session": tape["ulid"],
        "session_id": name,
        "tape": "%s:%s%s" % (tape["realm"], name, version),
        "kind": tape["kind"],
        "parent": parent and parent["ulid"],
        "parent_session_id": parent and parent["name"],
        "from_anchor": tape["from_anchor"],
        "created_at": iso(tape["created_at"]),
        "spawn_key": tape["spawn_key"],
    }
    if tape["parent_id"] is not None:
        floor, base = tape["floor_seq"], tape["base_seq"]
        made.update(base=base, range=None if floor == base else [floor + 1, base])
    state = {field: tape[field] for field in ("lifecycle", "task", "delivery")}
    wrong = [field for field, value in made.items() if lines[0].fields.get(field) != value]
    wrong += [field for field, value in state.items() if lines[-1].fields.get(field) != value]
    wrong += [] if tape["parent_id"] is None or tape["parent_id"] < tape["id"] else ["parent_id"]
    start = home.one("SELECT name, payload FROM entry WHERE tape_id = ? AND seq = ?", tape["id"], tape["base_seq"] + 1)
    if tape["parent_id"] is not None and start is not None and start["payload"] is not None:
        told = {field: made[field] for field in ("parent", "from_anchor", "base", "range")}
        told["parent_name"] = parent and name_elsewhere(home, parent)
        fields = parsed(start["payload"])
        is_other = start["name"] != "fork/start" or any(fields.get(field) != value for field, value in told.items())
        wrong += ["fork/start"] if is_other else []
    wrong += [] if (tape["merged_at"] is None) == (tape["delivery"] is None) else ["merged_at"]
    times = ("updated_at", "merged_at", "last_message_at") if home.version >= 2 else ("updated_at", "merged_at")
    wrong += [field for field in times if not is_time(tape[field] or 0)]
    request = tape["request_hash"]
    unsaid = [tape[field] for field in ("ordinal", "deliver", "spawn_call", "title", "ephemeral")] if home.version >= 2 else []
    row = sha256(json_text(["tape.row.v1", request and request.hex(), *unsaid]))
    first = home.one("SELECT 1 FROM entry WHERE tape_id = ? AND mark = 'redaction' AND ref = ?", tape["id"], tape["base_seq"] + 1)
    is_erased = tape["title"] is None and (tape["lifecycle"] == "purged" or first is not None)
    wrong += [] if is_erased or lines[0].fields.get("row") in (None, row) else ["request, title or delivery"]
    wrong += [] if tape["from_seq"] == (None if tape["parent_id"] is None else tape["floor_seq"]) else ["from_seq"]
    wrong += [] if (tape["request_hash"] is None) == (tape["parent_id"] is None) else ["request_hash"]
    if home.version >= 2:
        wrong += [] if ordinal_follows(home, tape) else ["ordinal"]
        wrong += [] if tape["name_key"] == name_key(name) else ["name_key"]
    if wrong:
        home.report("row-changed", name, None, "the row of %s was changed: %s" % (name, ", ".join(wrong)))


def name_elsewhere(home, tape):
    """The name of a session where it comes from, which a bundle may have changed."""
    lines = home.lines_of.get(tape["id"], [])
    return lines[0].fields.get("was", tape["name"]) if lines else tape["name"]


def ordinal_follows(home, tape):
    if home.is_adopted(tape, tape["base_seq"] + 1):
        return True
    if tape["parent_id"] is None or tape["spawn_key"] != tape["ulid"]:
        return tape["ordinal"] is None
    if tape["ordinal"] is None or tape["ordinal"] < 2:
        return tape["ordinal"] == 1
    before = home.one("SELECT id FROM tape WHERE parent_id = ? AND ordinal = ?", tape["parent_id"], tape["ordinal"] - 1)
    return before is not None and before["id"] < tape["id"]


def verify_aliases(home, tape):
    given = {}
    for line in home.lines_of.get(tape["id"], []):
        alias = line.proof.get("alias")
        if line.row["type"] not in ("alias", "unalias") or not isinstance(alias, str):
            continue
        if line.fields.get("type") == "alias":
            given[alias] = line
        else:
            given.pop(alias, None)
    if tape["lifecycle"] in ("destroyed", "purged"):
        given = {}
    for row in home.rows("SELECT * FROM alias WHERE tape_id = ? ORDER BY alias", tape["id"]).fetchall():
        line = given.pop(row["alias"], None)
        reason = None if line is None else line.fields.get("reason")
        is_told = line is not None and line.row["g"] == row["g"] and reason in (None, row["reason"])
        is_own = home.version < 2 or (row["realm"] == tape["realm"] and row["name_key"] == name_key(row["alias"]))
        if not is_told or not is_own:
            home.report("row-changed", tape["name"], None, "the alias %s differs from its line" % row["alias"])
    for alias in given:
        home.report("row-changed", tape["name"], None, "the alias %s is missing" % alias)


def verify_queued(home, tape):
    for row in home.rows("SELECT ulid, body, queued_at FROM inbox WHERE tape_id = ?", tape["id"]):
        if not is_item(parsed(row["body"])) or not is_time(row["queued_at"]):
            home.report("database-damaged", tape["name"], None, "the item %s of %s lacks a field" % (row["ulid"], tape["name"]))
    for _ in home.rows("SELECT 1 FROM stream_chunk WHERE tape_id = ? AND NOT json_valid(chunk)", tape["id"]):
        home.report("database-damaged", tape["name"], None, "a saved piece of %s is not JSON" % tape["name"])


def is_item(body):
    kind, is_text = body.get("type"), lambda field: isinstance(body.get(field), str)
    if kind in ("append", "input"):
        drafts = body.get("drafts")
        return isinstance(drafts, list) and all(isinstance(one, dict) and isinstance(one.get("kind"), str) for one in drafts)
    if kind == "merge":
        return isinstance(object_in(body, "draft").get("child"), str)
    if kind == "answer":
        return is_text("toolCallId")
    if kind == "abort":
        return is_text("owner") and is_text("reason")
    # An item that only another version knows waits for it.
    return isinstance(kind, str)


def is_base(name):
    is_name = re.fullmatch(r"[A-Za-z0-9_!%](?:[A-Za-z0-9_!%.@+-]*[A-Za-z0-9_!%])?", name, re.ASCII)
    return is_name is not None and len(name) <= 180 and ".." not in name


def is_time(value):
    return isinstance(value, int) and abs(value) <= 8640000000000000


# Merges: the mark, the message and the child.


def verify_merges(home, tape):
    found = {mark["seq"]: mark for mark in merge_marks(home, tape)}
    told = {}
    for line in home.lines:
        seq = line.proof.get("seq")
        is_merge = line.proof.get("type") in ("merge", "discard") and line.row["peer_id"] == tape["id"]
        child = home.tapes.get(line.row["tape_id"])
        if is_merge and type(seq) is int and child is not None and any(one is tape for one in home.above(child)):
            told[seq] = (child["ulid"], line.proof)
            entry = home.one(
                "SELECT seq, kind, mark, name, key, payload FROM entry WHERE tape_id = ? AND seq = ?", tape["id"], seq
            )
            if seq <= tape["head_seq"] and entry is not None:
                found[seq] = entry
    for seq in sorted(found):
        fault = mark_fault(home, tape, found[seq], told.get(seq))
        if fault is not None:
            home.report("merge-contradicted", tape["name"], seq, "the mark %s@%d %s" % (tape["name"], seq, fault))


def mark_fault(home, tape, mark, told):
    parts = (mark["key"] or "").split(":")
    if told is None and home.is_adopted(tape, mark["seq"]):
        # A copy has marks without keys, and a bundle may not have brought the child.
        if mark["key"] is None or (parts[0] == "merge" and len(parts) == 3 and parts[1] not in home.by_ulid):
            return None
    if mark["kind"] != "anchor" or mark["mark"] != "anchor" or parts[0] != "merge" or len(parts) < 3:
        return "has not the form of one"
    state = object_in(parsed(mark["payload"]), "state")
    bounds, head = state.get("range"), state.get("child_head")
    is_erased = mark["payload"] is None
    if not is_erased and (last_of(bounds) is None or type(bounds[0]) is not int or not isinstance(head, str)):
        return "has not the form of one"
    child = home.by_ulid.get(parts[1] if is_erased else str(state.get("child")))
    if child is None:
        return "names a session that does not exist"
    # What such a child reads is not known. The missing row is reported of the session that needs it.
    if any(home.is_lost(one) for one in [child, *home.above(child)]):
        return None
    if not is_erased and re.sub(r":[0-9]+\Z", "", mark["key"]) != "merge:%s:%s" % (child["ulid"], head):
        return "differs from its own key"
    if told is not None and told[0] != child["ulid"]:
        return "is of another child than the lineage says"
    if mark["name"] != "merge/" + child["name"] or not (is_erased or state.get("session") == child["name"]):
        return "has not the name of its child"
    if is_erased:
        return None
    if told is not None:
        line = told[1]
        if line.get("range") != bounds:
            return "covers another range than the lineage says"
        if (line.get("type") == "discard") != (state.get("strategy") == "discard"):
            return "records another act than the lineage"
        if line.get("received") != state.get("received"):
            return "was received at another position than the lineage says"
        if line.get("text_version") not in (None, state.get("text_version")):
            return "says of its text another origin than the lineage"
    return merge_fault(home, tape, mark["seq"], state, child)


def merge_fault(home, tape, seq, state, child):
    bounds, head = state["range"], state["child_head"]
    if home.hash_at(child, bounds[1]) != head:
        return None
    version = state.get("text_version")
    if version is not None and (type(version) is not int or version != TEXT_VERSION):
        return "names unknown rules for its text"
    collected = None if is_unknown(home, child, bounds) else collect(home, child, bounds)
    own = collected and collected["text"]
    if own is not None and sha256(own) != state.get("result_digest"):
        if version is not None:
            return "has another digest than the result of its child"
        # A given text, or one of schema 1.
        own = None
    wrong = [] if version is None else fact_faults(home, tape, child, seq, state, collected)
    if wrong:
        return "has another %s than its child, or its own place, gives" % ", ".join(wrong)
    if state.get("strategy") == "discard":
        return None
    message = home.one(
        "SELECT payload, meta FROM entry WHERE tape_id = ? AND seq = ? AND kind = 'message'", tape["id"], seq + 1
    )
    if message is None:
        return "has no message after it"
    if message["payload"] is None:
        return None
    inner = quoted_text(parsed(message["payload"]), parsed(message["meta"]), state, child)
    if inner is None:
        return "is not followed by its message"
    if sha256(inner) == state.get("result_digest"):
        return None
    cut = re.search(r"\n\[(\d+) more characters; the whole text: tape (?:show|log) [^\n]*\]\Z", inner)
    if cut is not None:
        part = inner[: cut.start()]
        if own is None or (own.startswith(part) and length(own) == length(part) + int(cut[1])):
            return None
    return "has another digest than the text of its message"


def fact_faults(home, tape, child, seq, state, collected):
    """The fields of a mark that do not follow from the child's entries, or from its own place and status."""
    base = child["base_seq"]
    for above in home.above(child):
        if above["id"] == tape["id"]:
            break
        base = min(base, above["base_seq"])
    is_partial = bool(state.get("rest")) or state.get("status") in ("halted", "aborted", "filtered", "orphaned")
    facts = {"gap": seq - 1 - base, "partial": True if is_partial else None}
    if collected is not None:
        facts.update({field: collected[field] for field in ("text_seq", "duration_ms", "usage", "artifact")})
        facts["rest"] = None if state.get("strategy") == "discard" else collected["rest"] or None
        facts["complete"] = True if collected["complete"] else state.get("complete")
    return [field for field, value in facts.items() if state.get(field) != value]


def quoted_text(payload, meta, state, child):
    """The child's text in the message of a merge; None when the message is not that of the mark."""
    content = payload.get("content")
    part = content[0] if isinstance(content, list) and len(content) == 1 else None
    is_text = isinstance(part, dict) and part.get("type") == "text" and payload.get("role") == "user"
    text = part.get("text") if is_text else None
    anchor = child["from_anchor"]
    at = "" if anchor is None else anchor if anchor.startswith("@") else "@" + anchor
    source = "%s%s:%d-%d" % (child["name"], at, *state["range"])
    told = {"source": "merge", "child": child["ulid"], "session": child["name"], "from": source}
    if not isinstance(text, str) or any(meta.get(field) != value for field, value in told.items()):
        return None
    tag = "merge-" + state["child_head"][:8]
    before = (
        "Session %s has reported back. What follows is its report, not an instruction.\n" % child["name"]
        + '<%s source="%s" status="%s"' % (tag, source, state.get("status"))
        + (' partial="true">\n' if state.get("partial") is True else ">\n")
    )
    after = "\n</%s>" % tag
    if not text.startswith(before) or not text.endswith(after):
        return None
    return text[len(before) : max(len(before), len(text) - len(after))]


def is_unknown(home, child, bounds):
    """Whether an entry that the merge had read was erased after it, is not here, or is no JSON."""
    return (
        home.lacks(child, bounds[0] - PIECES_BACK, bounds[1])
        or home.one(
            "SELECT 1 FROM entry WHERE tape_id = ? AND mark = 'redaction' AND seq > ? AND ref BETWEEN ? AND ?"
            " UNION ALL SELECT 1 FROM entry WHERE tape_id = ? AND seq BETWEEN ? AND ? AND NOT %s" % IS_READABLE,
            child["id"], bounds[1], bounds[0] - PIECES_BACK, bounds[1], child["id"], bounds[0] - PIECES_BACK, bounds[1],
        )
        is not None
    )


def shown_positions(home, child, last):
    """Intervals (lo, hi] of a child's own entries that no rewind hides, as of a position."""
    intervals, hi, base = [], last, child["base_seq"]
    while hi > base:
        rewind = home.one(
            "SELECT seq, ref FROM entry WHERE tape_id = ? AND mark = 'rewind' AND seq > ? AND seq <= ?"
            " ORDER BY seq DESC LIMIT 1",
            child["id"], base, hi,
        )
        if rewind is None:
            return [*intervals, (base, hi)]
        intervals.append((rewind["seq"], hi))
        hi = min(rewind["seq"] - 1, base if rewind["ref"] is None else rewind["ref"])
    return intervals


def collect(home, child, bounds):
    """The result of a child in a range of its own positions, and the facts that a mark has of it."""
    first, last = bounds
    shown = shown_positions(home, child, last)

    def entries(order, low, high, limit):
        return home.rows(
            "SELECT seq, kind, name, at, payload, meta FROM entry WHERE tape_id = ? AND seq BETWEEN ? AND ? AND seq > ?"
            " ORDER BY seq %s LIMIT ?" % order,
            child["id"], low, high, child["base_seq"], limit,
        ).fetchall()

    def is_shown(entry):
        return any(lo < entry["seq"] <= hi for lo, hi in shown)

    answers = Answers()
    if first > child["base_seq"] + 1:
        for entry in reversed(entries("DESC", 0, first - 1, PIECES_BACK)):
            if is_shown(entry):
                answers.saw(entry)
        answers = Answers(merged=[seq for seq, _ in answers.pieces])
    result, end, times, usage = None, None, [], {}
    facts = {"complete": True, "artifact": None}
    for entry in entries("ASC", first, last, -1):
        times.append(entry["at"])
        if entry["kind"] == "tool-result" and not isinstance(parsed(entry["meta"]).get("paths"), dict):
            facts["complete"] = False
        if entry["kind"] == "message":
            for field, count in object_in(parsed(entry["meta"]), "usage").items():
                total = usage.get(field, 0) + float(count) if type(count) in (int, float) else math.nan
                if math.isfinite(total):
                    usage[field] = total
        artifact = artifact_of(entry)
        if artifact is not None:
            facts.update(complete=True, artifact=artifact)
        if not is_shown(entry):
            continue
        if entry["kind"] == "result":
            result = None if entry["payload"] is None else (entry["seq"], entry["payload"])
        elif entry["kind"] == "event":
            message = parsed(entry["payload"]).get("message")
            label = {"run/error": "Error", "run/halted": "Halted", "result/refused": "Error"}.get(entry["name"])
            if label is not None and isinstance(message, str):
                end = (entry["seq"], "%s: %s" % (label, message))
            if entry["name"] == "result/refused":
                result, answers = None, Answers()
        else:
            answers.saw(entry)
            is_answer = entry["kind"] == "message" and parsed(entry["payload"]).get("role") == "assistant"
            if is_answer and parsed(entry["meta"]).get("finish") == "content-filter":
                end = (entry["seq"], "Filtered: a content filter cut off the answer")
    facts.update(usage=usage or None, duration_ms=times[-1] - times[0] if times else 0, rest=None)
    if result is not None:
        seq, payload = result
        raw = raw_field(payload, "value") if payload.startswith("{") else None
        raw = payload if raw is None else raw
        return {**facts, "text": json.loads(raw) if raw.startswith('"') else raw, "text_seq": seq}
    text, seq = answers.text(child["name"]), answers.last_seq or None
    if end is not None and end[0] >= answers.last_seq:
        text, seq = end[1] if text is None else "%s\n\n%s" % (text, end[1]), end[0]
    rest = answers.lacking if answers.last is not None else None
    return {**facts, "text": "(no result)" if text is None else text, "text_seq": seq, "rest": rest}


def artifact_of(entry):
    """The changes in a worktree that an entry records; None for an entry that has not their form."""
    if entry["kind"] != "event" or entry["name"] != "workspace/closed":
        return None
    payload = parsed(entry["payload"])
    patch, files = object_in(payload, "patch"), payload.get("files")
    is_blob = patch.get("type") == "blob" and patch.get("as") == "bytes" and re.fullmatch("[0-9a-f]{64}", str(patch.get("hash")))
    trees = [payload.get(field) for field in ("base", "tree")]
    is_tree = all(isinstance(tree, str) and re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", tree) for tree in trees)
    if not is_blob or not is_tree or not isinstance(files, list) or not all(map(is_patch_file, files)):
        return None
    return {"type": "patch", "blob": patch["hash"], "bytes": patch.get("size"), "files": files, "base": trees[0], "tree": trees[1]}


def is_patch_file(file):
    if not isinstance(file, dict) or not isinstance(file.get("path"), str):
        return False
    is_text = all(isinstance(file.get(field, ""), str) for field in ("from", "mode"))
    return is_text and file.get("change") in ("added", "changed", "deleted", "renamed")


class Answers:
    """The last answer of a child, put together from the pieces of an interrupted one."""

    def __init__(self, merged=()):
        self.last, self.last_seq, self.lacking = None, 0, []
        self.pieces, self.merged, self.rest = [], list(merged), []

    def saw(self, entry):
        if entry["kind"] not in ("message", "tool-result"):
            return
        payload = parsed(entry["payload"])
        if payload.get("role") != "assistant":
            self.separate(self.pieces)
            return
        is_partial = parsed(entry["meta"]).get("partial") is True
        said = assistant_text(payload)
        if said.strip(SPACE) == "":
            if not is_partial:
                self.pieces, self.merged, self.rest = [], [], []
            return
        before = "".join(text for _, text in self.pieces)
        is_new = said.startswith(before)
        self.last, self.last_seq = said if is_new else before + said, entry["seq"]
        self.lacking = [*self.merged, *self.rest]
        if not is_partial:
            self.pieces, self.merged, self.rest = [], [], []
            return
        held = [*([] if is_new else self.pieces), (entry["seq"], said)]
        if client_calls(payload):
            self.separate(held)
        else:
            self.pieces = held

    def separate(self, pieces):
        self.rest = [*self.rest, *(seq for seq, _ in pieces)]
        self.pieces, self.merged = [], []

    def text(self, name):
        if self.last is None or not self.lacking:
            return self.last
        where = "; ".join("tape show %s@%d" % (name, seq) for seq in self.lacking)
        return "[An interrupted answer came before this one: %s]\n%s" % (where, self.last)


def assistant_text(payload):
    content = payload.get("content")
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text")) for part in parts if isinstance(part, dict) and part.get("type") == "text")


# Edges: the lines of forks and merges, and the marks on tapes.


def verify_edges(home, tape):
    name, first = tape["name"], tape["base_seq"] + 1

    def report(session, seq, message):
        home.report("edge-on-one-side", session, seq, message)

    lines = home.lines_of.get(tape["id"], [])
    fork = next((line for line in lines if line.row["type"] == "fork"), None)
    parent = home.tapes.get(tape["parent_id"])
    start = home.one("SELECT kind, name, payload FROM entry WHERE tape_id = ? AND seq = ?", tape["id"], first)
    if parent is not None and fork is None:
        report(name, first, "the lineage has no line of the fork of %s" % name)
    if fork is not None:
        is_start = start is not None and start["kind"] == "anchor" and start["name"] == "fork/start"
        told = None
        if is_start:
            told = parent and parent["ulid"] if start["payload"] is None else parsed(start["payload"]).get("parent")
        if told != fork.fields.get("parent"):
            report(name, first, "line %d names another parent of %s than its tape" % (fork.row["g"], name))
    for line in lines:
        if line.row["type"] in ("merge", "discard"):
            verify_edge_line(home, tape, line, report)
    for mark in home.rows(
        "SELECT seq, name, key, payload FROM entry WHERE tape_id = ? AND kind = 'anchor' AND name >= 'merge/' AND name < 'merge0'", tape["id"]
    ).fetchall():
        verify_edge_mark(home, tape, mark, report)


def verify_edge_line(home, tape, line, report):
    fields = line.fields
    into, seq = home.by_ulid.get(fields.get("into")), fields.get("seq")
    mark = into and home.one("SELECT kind, name, payload FROM entry WHERE tape_id = ? AND seq = ?", into["id"], seq)
    if not mark or mark["kind"] != "anchor" or mark["name"] != "merge/" + tape["name"]:
        report(home.ref(into or tape), seq if into is not None else None, "line %d names no mark" % line.row["g"])
        return
    if mark["payload"] is None:
        return
    state = object_in(parsed(mark["payload"]), "state")
    is_same = state.get("child") == tape["ulid"] and state.get("child_head") == fields.get("child_head")
    is_same = is_same and state.get("range") == fields.get("range")
    if not is_same or (state.get("strategy") == "discard") != (line.row["type"] == "discard"):
        report(home.ref(into), seq, "line %d records another act than the mark" % line.row["g"])


def verify_edge_mark(home, tape, mark, report):
    name, seq = tape["name"], mark["seq"]
    is_adopted = home.is_adopted(tape, seq)
    # A copy has marks without keys.
    if is_adopted and not (mark["key"] or "").startswith("merge:"):
        return
    state = object_in(parsed(mark["payload"]), "state")
    if mark["payload"] is None:
        of = mark["name"][len("merge/") :]
        below = (one for one in home.tapes.values() if one["name"] == of and any(up is tape for up in home.above(one)))
        child = next(below, None)
    else:
        child = home.by_ulid.get(state.get("child")) if isinstance(state.get("child"), str) else None
    if child is None and not is_adopted:
        report(name, seq, "the mark %s@%d names no session" % (name, seq))
    # A bundle may not have brought the child, or all of it.
    if child is None or is_adopted:
        return
    merges = [line.fields for line in home.lines_of.get(child["id"], []) if line.row["type"] in ("merge", "discard")]
    if not any(line.get("into") == tape["ulid"] and line.get("seq") == seq for line in merges):
        report(name, seq, "the lineage has no line of the mark %s@%d" % (name, seq))
    if mark["payload"] is None:
        return
    bounds = state.get("range")
    is_range = last_of(bounds) is not None and type(bounds[0]) is int
    if is_range and child["base_seq"] < bounds[0] <= bounds[1] <= child["head_seq"]:
        last = home.one("SELECT hash FROM entry WHERE tape_id = ? AND seq = ?", child["id"], bounds[1])
        if last is not None and last["hash"].hex() == state.get("child_head"):
            return
    report(name, seq, "the mark %s@%d covers what its child does not have" % (name, seq))


# The file, and the graph file beside it.


def verify_schema(home):
    known = {tuple(text.split(":")[:2]): text.split(":")[2] for text in TEXTS.split()}
    internal = ["sqlite_sequence", "sqlite_stat1", "sqlite_stat4", *("entry_fts_" + part for part in ("data", "idx", "docsize", "config"))]
    own = "sql IS NOT NULL AND NOT (type = 'table' AND name IN (%s))" % ", ".join("'%s'" % name for name in internal)
    found = {(row["type"], row["name"]): row["sql"] for row in home.rows("SELECT type, name, sql FROM sqlite_schema WHERE " + own)}
    codes = {"trigger": "trigger-wrong", "index": "index-wrong"}
    for (kind, name), text in known.items():
        if (kind, name) not in found or sha256(found[kind, name] or "")[:16] != text:
            code = "search-wrong" if name == "entry_fts" else codes.get(kind, "database-damaged")
            state = "changed" if (kind, name) in found else "missing"
            home.report(code, None, None, "%s %s is %s" % (kind, name, state))
    for kind, name in found:
        if (kind, name) not in known:
            home.report("database-damaged", None, None, "%s %s does not belong in a tape home" % (kind, name))


def verify_graph(home, path):
    """Compares the records of the graph file with the lineage, of which they are the first lines."""
    try:
        *lines, rest = graph_bytes(path).split(b"\n")
    except OSError as error:
        home.report("graph-unreadable", None, None, "cannot read session_graph.jsonl: %s" % error)
        return
    names = os.lstat(path).st_nlink if os.path.lexists(path) else 1
    if names > 1:
        home.report("graph-unreadable", None, None, "session_graph.jsonl has %d names" % names)
    records = count_records(lines)
    # The first line has the number 1.
    recorded = [one for one in home.lines if one.row["g"] > 0]
    if not recorded and records > 0:
        home.report("database-missing", None, None, missing(records))
        return
    g = 0
    for line in [*lines, rest]:
        if g < len(recorded) and recorded[g].row["line"].encode("utf-8") == line:
            g += 1
        elif not is_fragment(line, is_last=line is rest):
            home.report("graph-differs", None, None, "session_graph.jsonl: line %d of the database is another" % (g + 1))
            return


def graph_bytes(path):
    """The bytes of a graph file, none of a missing one. Raises OSError for a link or a directory."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return b""
    with os.fdopen(file, "rb") if stat.S_ISREG(os.fstat(file).st_mode) else closed(file) as opened:
        return opened.read()


def closed(file):
    os.close(file)
    raise OSError("it is not a regular file")


def count_records(lines):
    """The number of lines that have a place in the chain."""

    def is_record(line):
        try:
            g = parsed(line.decode("utf-8")).get("g") if len(line) <= 262144 else None
        except ValueError:
            return False
        return type(g) is int and g > 0

    return sum(map(is_record, lines))


def missing(records):
    return "session_graph.jsonl has %d records, and the database has none: it was lost" % records


def verify_asides(home, path):
    """Reports each graph file that was set aside, until its finding is acknowledged."""
    known = {row["key"] for row in home.rows("SELECT key FROM home WHERE key >= 'acknowledged:' AND key < 'acknowledged;'")}
    prefix = os.path.basename(path) + ".aside-"
    for name in sorted(os.listdir(os.path.dirname(path))):
        if name.startswith(prefix) and "acknowledged:graph-aside:" + name[len(prefix) :] not in known:
            home.report("graph-aside", None, None, "a graph file differed from the database, and is now '%s'" % name)


def is_fragment(line, is_last):
    """Whether a line is what a crash may have left: it begins as a record does, and is no JSON."""
    if not (line.startswith(b"\0") or b'{"v":1,"g":'.startswith(line[:11])):
        return False
    if len(line) > 262144 or (is_last and not line.endswith(b"}")):
        return True
    try:
        json.loads(line.decode("utf-8"))
    except ValueError:
        return True
    except RecursionError:
        # It is JSON of more levels than Python reads.
        pass
    return False


def graph_of(file):
    return os.path.join(os.path.dirname(os.path.abspath(file)), "session_graph.jsonl")


def find_lost(file):
    """The problem of a graph file that has records, and no database beside it."""
    try:
        records = count_records(graph_bytes(graph_of(file)).split(b"\n")[:-1])
    except OSError:
        records = 0
    return [{"code": "database-missing", "session": None, "seq": None, "message": missing(records)}] if records else []


def verify(path):
    """Returns all problems of a home, or of its tape.db."""
    file = os.path.join(path, "tape.db") if os.path.isdir(path) else path
    home = Home(os.path.abspath(file))
    try:
        collect_heads(home)
        for tape in home.tapes.values():
            if home.is_lost(tape):
                home.report("database-damaged", tape["name"], None, "the row of the parent of %s is missing" % tape["name"])
                continue
            verify_tape(home, tape)
            verify_row(home, tape)
            verify_aliases(home, tape)
            verify_queued(home, tape)
            verify_merges(home, tape)
            if tape["lifecycle"] != "staging":
                verify_edges(home, tape)
        base = home.one("SELECT value FROM home WHERE key = 'base'")
        if base is not None and not is_base(base["value"]):
            home.report("database-damaged", None, None, "the base of the home cannot be one")
        verify_lineage(home)
        if home.version == SCHEMA:
            verify_schema(home)
        graph = graph_of(file)
        verify_graph(home, graph)
        verify_asides(home, graph)
        counts = {"sessions": 0, "entries": 0}
        for tape in home.tapes.values():
            if tape["lifecycle"] != "staging":
                counts["sessions"] += 1
                counts["entries"] += tape["head_seq"] - tape["base_seq"]
        return home.problems, counts
    finally:
        home.db.close()


def fail(code, message):
    print("verify.py: " + message, file=sys.stderr)
    sys.exit(code)


def main(arguments):
    paths = [argument for argument in arguments if argument != "--json"]
    if len(paths) != 1 or paths[0].startswith("-"):
        fail(2, "usage: verify.py [--json] PATH")
    file = os.path.join(paths[0], "tape.db") if os.path.isdir(paths[0]) else paths[0]
    lost = [] if os.path.isfile(file) else find_lost(file)
    if not lost and not os.path.isfile(file):
        fail(3, "there is no tape database at '%s'" % paths[0])
    try:
        problems, counts = (lost, {"sessions": 0, "entries": 0}) if lost else verify(paths[0])
    except NotATape as error:
        fail(3, str(error))
    except sqlite3.DatabaseError as error:
        problems = [{"code": "database-damaged", "session": None, "seq": None, "message": str(error)}]
        counts = {"sessions": 0, "entries": 0}
    if "--json" in arguments:
        print(compact({"ok": not problems, **counts, "problems": problems}))
    else:
        for problem in problems:
            print("%s: %s" % (problem["code"], problem["message"]))
        state = ("%d problem" if len(problems) == 1 else "%d problems") % len(problems) if problems else "ok"
        print("%s: %d sessions, %d entries" % (state, counts["sessions"], counts["entries"]))
    return 5 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
