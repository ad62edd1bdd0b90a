import {
  anchor,
  assistant,
  type Draft,
  handoff,
  type Seq,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
} from '@tapedeck/tape';
import { expect } from 'vitest';
import type { CopiedSession } from '../copying-model.ts';
import { refusal } from '../store.ts';
import type { Model } from './model.ts';

/** One command's choices: numbers that are taken modulo what there is to choose from. */
export interface Choice {
  readonly a: number;
  readonly b: number;
  readonly c: number;
}

/** Acts on a session through one handle, says what must come of it, and moves the model on. */
export type Verb = (on: {
  readonly model: Model;
  readonly store: SqliteTapeStore;
  readonly session: CopiedSession;
  readonly choice: Choice;
}) => void;

const sessionsMax = 10;

/** A position that a session has, inherited ones included. */
const position = (session: CopiedSession, n: number): Seq =>
  session.floor + 1 + (n % (session.head - session.floor));

const appends =
  (drafts: (n: number, session: CopiedSession) => readonly Draft[]): Verb =>
  ({ model, store, session }) => {
    const n = model.next();
    const batch = drafts(n, session);
    if (batch.length === 0) return;
    const from = session.head + 1;
    const key = `k${n}`;
    const receipt = store.entries.append(session.name, batch, { key });
    expect(receipt).toMatchObject({ from, to: from + batch.length - 1, added: batch.length, repeated: 0 });
    model.write(session, batch);
    model.keyed.push({ session, key, drafts: batch, from });
  };

const results = (session: CopiedSession): Draft[] =>
  session.open().map((toolCallId) => toolResult({ toolCallId, toolName: 'read' }, `of ${toolCallId}`));

const rewindTo = (session: CopiedSession, asked: Seq): Seq =>
  asked === session.floor ? asked : Math.max(session.settled(asked), session.floor);

export const verbs: Readonly<Record<string, Verb>> = {
  append: appends((n) => [user(`u${n}`)]),
  batch: appends((n) => [user(`u${n}`), assistant(`a${n}`)]),
  calls: appends((n) => [assistant([toolCall(`c${n}`, 'read', {}), toolCall(`d${n}`, 'read', {})])]),
  result: appends((_, session) => results(session).slice(0, 1)),
  results: appends((_, session) => results(session)),
  anchor: appends((n) => [anchor('A', { n })]),
  handoff: appends((n) => [handoff('B', { summary: `s${n}` })]),
  again: ({ model, store, choice }) => {
    const done = model.keyed[choice.a % Math.max(1, model.keyed.length)];
    if (done === undefined) return;
    const { session, key, drafts, from } = done;
    expect(store.entries.append(session.name, drafts, { key })).toMatchObject({
      from,
      to: from + drafts.length - 1,
      added: 0,
      repeated: drafts.length,
    });
    // Erased content cannot be compared any more.
    if (model.erasedBy(session, from) !== undefined) return;
    const other = () => store.entries.append(session.name, [user('other')], { key });
    expect(refusal(other).code).toBe('TAPE_KEY_CONFLICT');
  },
  rewind: ({ model, store, session, choice }) => {
    const asked = position(session, choice.a);
    const to = rewindTo(session, asked);
    expect(store.history.rewind(session.name, asked)).toMatchObject({ seq: session.head + 1, to });
    model.write(session, [{ kind: 'rewind', mark: 'rewind', ref: to, payload: { to } }]);
  },
  unrewind: ({ model, store, session }) => {
    const last = session.lastRewind();
    if (last === undefined) {
      expect(refusal(() => store.history.unrewind(session.name)).code).toBe('TAPE_BAD_POINT');
      return;
    }
    const to = rewindTo(session, last - 1);
    expect(store.history.unrewind(session.name)).toMatchObject({ seq: session.head + 1, to });
    model.write(session, [{ kind: 'rewind', mark: 'rewind', ref: to, payload: { to } }]);
  },
  fork: ({ model, store, session, choice: { a, b, c } }) => {
    if (model.sessions.length >= sessionsMax) return;
    const n = model.next();
    const cut = b % 2 === 0 ? session.head : position(session, b);
    const since = c % 2 === 0 ? undefined : Math.min(cut, position(session, c));
    const request = {
      key: `f${n}`,
      cut,
      ...(since !== undefined && { inherit: { since } }),
      ...(a % 3 === 0 && { intention: { nextSteps: `i${n}` } }),
    };
    const base = session.settled(cut);
    const floor = Math.min(since ?? session.floor, base);
    const forked = store.lineage.fork(session.name, request);
    expect(forked).toMatchObject({ base, range: floor === base ? null : [floor + 1, base], repeated: false });
    expect(store.lineage.fork(session.name, request)).toMatchObject({
      session: forked.session,
      base,
      repeated: true,
    });
    const structural = ['fork/start', ...(a % 3 === 0 ? ['intention'] : [])];
    model.fork(forked.session, { parent: session, floor, base }, structural);
  },
  merge: ({ model, store, session: child }) => {
    const { parent } = child;
    if (parent === undefined) return;
    const last = model.lastMerge(child, parent);
    if (last?.same === true) {
      expect(store.lineage.merge(child.name)).toMatchObject({ repeated: true, seq: last.seq });
      return;
    }
    if (model.lifecycle(parent) === 'archived') {
      expect(refusal(() => store.lineage.merge(child.name)).code).toBe('TAPE_ARCHIVED');
      return;
    }
    if (parent.settled() !== parent.head || child.settled() !== child.head) {
      expect(refusal(() => store.lineage.merge(child.name)).code).toBe('TAPE_UNSETTLED');
      return;
    }
    const range = [(last?.to ?? child.base) + 1, child.head];
    expect(store.lineage.merge(child.name)).toMatchObject({ repeated: false, seq: parent.head + 1, range });
    model.merge(child, parent);
  },
  redact: ({ model, store, session, choice }) => {
    const seq = position(session, choice.a);
    const owner = model.ownerOf(session, seq);
    const { kind } = session.at(seq);
    const before = model.erasedBy(owner, seq);
    const redact = () => store.entries.redact(session.name, seq, 'a test');
    if (before !== undefined) expect(redact()).toMatchObject({ repeated: true, by: before });
    else if (kind === 'rewind' || kind === 'redaction') expect(refusal(redact).code).toBe('TAPE_BAD_ENTRY');
    else if (seq > owner.settled()) expect(refusal(redact).code).toBe('TAPE_UNSETTLED');
    else {
      expect(redact()).toMatchObject({ session: owner.name, seq, by: owner.head + 1, repeated: false });
      model.erase(owner, seq, 'a test');
    }
  },
  archive: ({ model, store, session }) => {
    const lifecycle = model.lifecycle(session) === 'archived' ? 'active' : 'archived';
    expect(store.sessions.update(session.name, { lifecycle }).lifecycle).toBe(lifecycle);
    model.setLifecycle(session, lifecycle);
  },
  verify: ({ store, session }) => {
    expect([...store.verify(session.name)]).toEqual([]);
  },
};
