import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeLine, firstLinePrev, hashLine, type LineageLine } from '@tapedeck/tape/store';

/** A directory that goes away with the block. */
export function tempDir(): Disposable & { readonly path: string } {
  const made = mkdtempDisposableSync(join(tmpdir(), 'graph-'));
  return { path: made.path, [Symbol.dispose]: () => made.remove() };
}

/** The ULID that a test's session has: readable, and valid. */
export function ulid(n: number): string {
  return `01J${String(n).padStart(23, '0')}`;
}

type Told = Partial<LineageLine> & Pick<LineageLine, 'type' | 'session_id' | 'session'>;

/** Records that number and chain themselves as the store does. */
export function records(...told: readonly Told[]): LineageLine[] {
  let prev = firstLinePrev;
  return told.map((fields, i) => {
    const at = new Date(Date.UTC(2026, 10, 21, 10, i)).toISOString();
    const record: LineageLine = {
      v: 1,
      g: i + 1,
      event_id: ulid(1000 + i),
      parent_session_id: null,
      from_anchor: null,
      created_at: at,
      status: 'active',
      at,
      parent: null,
      tape: `tape:${fields.session_id}`,
      kind: 'session',
      prev,
      ...fields,
    };
    prev = hashLine(encodeLine(record));
    return record;
  });
}

/** The lines of this many sessions, each chained to the one before. */
export function lines(count: number): string[] {
  const told = Array.from({ length: count }, (_, i) => ({
    type: 'session' as const,
    session_id: `s${i + 1}`,
    session: ulid(i + 1),
  }));
  return records(...told).map(encodeLine);
}

/** Lines as a file holds them. */
export function fileOf(all: readonly string[]): string {
  return all.map((line) => `${line}\n`).join('');
}

/**
 * Three levels: main forks a, a forks b, b merges into a, a into main; main also forks c, which fails, and
 * d, which is running.
 */
export function family(): LineageLine[] {
  const main = { session_id: 'main', session: ulid(1) };
  const a = {
    session_id: 'main-fork-aaaaaaaa',
    session: ulid(2),
    parent_session_id: 'main',
    parent: ulid(1),
    from_anchor: 'task-start',
    kind: 'subagent',
  };
  const b = {
    session_id: 'main-fork-aaaaaaaa-fork-bbbbbbbb',
    session: ulid(3),
    parent_session_id: a.session_id,
    parent: ulid(2),
    kind: 'subagent',
  };
  const c = { ...a, session_id: 'main-fork-cccccccc', session: ulid(4) };
  const d = { ...a, session_id: 'main-fork-dddddddd', session: ulid(5), from_anchor: null, kind: 'branch' };
  return records(
    { type: 'session', ...main },
    {
      type: 'fork',
      ...a,
      base: 12,
      range: [8, 12],
      intention: { next_steps: 'write it', trigger_on_complete: 'notify_parent', digest: 'd'.repeat(64) },
    },
    { type: 'fork', ...c, base: 12, range: null },
    { type: 'fork', ...b, base: 20, range: [8, 20] },
    { type: 'status', ...c, status: 'failed', task: 'failed' },
    { type: 'status', ...b, status: 'completed', task: 'completed' },
    {
      type: 'merge',
      ...b,
      status: 'merged',
      delivery: 'merged',
      task: 'completed',
      into: ulid(2),
      into_session_id: a.session_id,
      seq: 31,
      range: [21, 29],
      child_head: 'c'.repeat(64),
      parent_head: 'e'.repeat(64),
    },
    { type: 'fork', ...d, base: 14, range: [1, 14] },
    {
      type: 'merge',
      ...a,
      status: 'merged',
      delivery: 'merged',
      into: ulid(1),
      into_session_id: 'main',
      seq: 15,
      range: [13, 42],
    },
  );
}
