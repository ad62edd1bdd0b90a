import { join } from 'node:path';
import { openTapeStore } from '@tapedeck/tape';
import { sha256 } from '@tapedeck/tape/store';
import type Database from 'better-sqlite3';
import type { Link } from '../support/format-hash.ts';
import { measureBoth } from './measure.ts';
import { rawHandle } from './raw.ts';
import { fillWithMerged, longSize, tapeOf } from './stores.ts';
import { grouped } from './table.ts';
import { type Bench, compared, type Row } from './topic.ts';

/** What an audit may take for each session beside the graph file, in milliseconds. */
const auditBudget = 0.05;

/**
 * Verifying a chain, against hashing the same payloads, and all of many sessions, against reading and hashing them; the
 * part of an audit that looks at all of them, against a budget.
 */
export function verify(bench: Bench): Row[] {
  return [...chain(bench), ...everything(bench)];
}

function chain(bench: Bench): Row[] {
  const entries = longSize(bench);
  const path = tapeOf(bench, entries);
  using stack = new DisposableStack();
  const store = stack.use(openTapeStore(path, { readonly: true }));
  const db = stack.adopt(rawHandle(path, 'NORMAL'), (handle) => handle.close());
  const select = db.prepare<[], string>('SELECT payload FROM entry WHERE tape_id = 1').pluck();
  const payloads = select.all();
  const { cpu: samples } = measureBoth(
    {
      hash: { act: () => payloads.forEach((payload) => void sha256(payload)) },
      read: {
        act: () => {
          for (const payload of select.iterate()) sha256(payload);
        },
      },
      rows: { act: () => hashRows(db) },
      store: {
        act: () => {
          const [problem] = store.verify('main');
          if (problem !== undefined) throw new Error(problem.message);
        },
      },
    },
    { rounds: bench.size(5, 3), times: 1 },
  );
  const work = `verify of ${grouped(entries)} entries (CPU)`;
  return [
    compared(samples.store, samples.hash, {
      work,
      against: 'hashing the same payloads, in memory',
      unit: 'ms',
      goal: { most: 6 },
    }),
    compared(samples.store, samples.read, {
      work,
      against: 'raw SELECT of the payloads and hashing',
      unit: 'ms',
    }),
    compared(samples.store, samples.rows, {
      work,
      against: 'raw SELECT of the same rows, and hashing the same bytes',
      unit: 'ms',
      goal: { most: 1.6 },
    }),
  ];
}

function everything(bench: Bench): Row[] {
  const sessions = bench.size(11_000, 22);
  const path = join(bench.dir, 'home-merged', 'tape.db');
  fillWithMerged(path, sessions);
  using stack = new DisposableStack();
  const store = stack.use(openTapeStore(path, { readonly: true }));
  const db = stack.adopt(rawHandle(path, 'NORMAL'), (handle) => handle.close());
  const { cpu: samples } = measureBoth(
    {
      read: { act: () => hashRows(db) },
      store: {
        act: () => {
          const [problem] = store.verify();
          if (problem !== undefined) throw new Error(problem.message);
        },
      },
      audit: {
        act: () => {
          const { found } = store.looseEnds();
          if (found.length > 0) throw new Error(`${found.length} sessions are not finished`);
        },
      },
    },
    { rounds: bench.size(9, 3), times: 1 },
  );
  const budget = samples.audit.map(() => sessions * auditBudget * 1000);
  return [
    compared(samples.store, samples.read, {
      work: `verify of ${grouped(sessions)} sessions (CPU)`,
      against: 'raw SELECT of the same rows, and hashing the same bytes',
      unit: 'ms',
      goal: { most: 4.6 },
    }),
    compared(samples.audit, budget, {
      work: `audit of ${grouped(sessions)} sessions, without the graph file (CPU)`,
      against: `a budget of ${auditBudget} ms for each`,
      unit: 'ms',
      goal: { most: 1 },
    }),
  ];
}

/** An entry with the columns that its two hashes cover. */
interface StoredRow extends Link {
  readonly id: number;
  readonly tape_id: number;
  readonly meta: string | null;
  readonly payload: string;
  readonly salt: string;
  readonly body: string;
  readonly hash: string;
}

/** Reads all rows that a verification compares, and computes what is hashed of them: bodies, links and lines. */
function hashRows(db: Database.Database): void {
  const pages = <Row extends { readonly id: number }>(sql: string, act: (row: Row) => void) => {
    const page = db.prepare<[number], Row>(sql);
    for (let after = 0; ; ) {
      const rows = page.all(after);
      rows.forEach(act);
      const last = rows.at(-1);
      if (last === undefined) return;
      after = last.id;
    }
  };
  pages<StoredRow>(
    `SELECT id, tape_id, seq, v, epoch, kind, mark, name, ref, at, key, meta, payload, lower(hex(salt)) AS salt,
       lower(hex(body_hash)) AS body, lower(hex(hash)) AS hash FROM entry WHERE id > +? ORDER BY id LIMIT 500`,
    ({ salt, payload, meta, tape_id, seq, kind, mark, name, ref, at, key, body, hash }) => {
      sha256(`${salt}${payload}\n${meta ?? ''}`);
      sha256(JSON.stringify([tape_id, seq, kind, mark, name, ref, at, key, body, hash]));
    },
  );
  pages<{ id: number; line: string }>(
    'SELECT g AS id, event_id, type, tape_id, peer_id, seq, to_seq, line, hash FROM lineage WHERE g > +? ORDER BY g LIMIT 500',
    ({ line }) => void sha256(line),
  );
  pages('SELECT * FROM tape WHERE id > +? ORDER BY id LIMIT 500', () => {});
}
