import type { SqliteTapeStore } from '@tapedeck/tape';
import fc from 'fast-check';
import { expect } from 'vitest';
import type { CopiedSession } from '../copying-model.ts';
import type { Handles } from './handles.ts';
import { comparable, type Model } from './model.ts';
import { type Choice, type Verb, verbs } from './verbs.ts';

interface Numbers extends Choice {
  /** Which session, through which handle, and which other handle looks at it afterwards. */
  readonly who: number;
  readonly by: number;
  readonly other: number;
}

/** One verb with its choices; afterwards two handles must see what the model says. */
class VerbCommand implements fc.Command<Model, Handles> {
  readonly #name: string;
  readonly #verb: Verb;
  readonly #numbers: Numbers;

  constructor(name: string, verb: Verb, numbers: Numbers) {
    this.#name = name;
    this.#verb = verb;
    this.#numbers = numbers;
  }

  check(): boolean {
    return true;
  }

  run(model: Model, handles: Handles): void {
    const { who, by, other, ...choice } = this.#numbers;
    const session = model.sessions[who % model.sessions.length];
    if (session === undefined) throw new TypeError('a model has sessions');
    this.#verb({ model, store: handles.at(by), session, choice });
    agree(model, handles.at(by), session);
    // The other session that the act changed: the parent, or a child that it made.
    for (const moved of new Set([session, session.parent ?? session, model.sessions.at(-1) ?? session]))
      agree(model, handles.at(by + 1 + other), moved);
  }

  toString(): string {
    return `${this.#name}(${JSON.stringify(this.#numbers)})`;
  }
}

class Reopen implements fc.Command<Model, Handles> {
  readonly #by: number;

  constructor(by: number) {
    this.#by = by;
  }

  check(): boolean {
    return true;
  }

  run(model: Model, handles: Handles): void {
    handles.reopen(this.#by);
    for (const session of model.sessions) agree(model, handles.at(this.#by), session);
  }

  toString(): string {
    return `reopen(${this.#by})`;
  }
}

const number = fc.nat({ max: 1_000 });
const numbers = fc.record({
  who: number,
  by: number,
  other: fc.nat({ max: 2 }),
  a: number,
  b: number,
  c: number,
});

/** Every verb, and the end and new beginning of a handle. */
export const commands: fc.Arbitrary<fc.Command<Model, Handles>>[] = [
  ...Object.entries(verbs).map(([name, verb]) =>
    numbers.map((chosen) => new VerbCommand(name, verb, chosen)),
  ),
  numbers.map(({ by }) => new Reopen(by)),
];

/** A handle and the model must agree on a session. */
function agree(model: Model, store: SqliteTapeStore, session: CopiedSession): void {
  const { name, floor, base, head } = session;
  const delivery = model.isDelivered(session) ? 'merged' : undefined;
  const lifecycle = model.lifecycle(session);
  expect(store.sessions.find(name)).toMatchObject({
    ...{ floor, base, head, settled: session.settled(), lifecycle },
    ...(delivery !== undefined && { delivery }),
  });
  same([...store.entries.read(name)].map(comparable), model.entries(session));
  same(
    [...store.views.entries(name, { policy: 'full' })].map(({ seq }) => seq),
    session.needed(),
  );
  same(
    store.sessions.list({ parent: name, all: true }).map((child) => child.session),
    model.children(session),
  );
}

/** Equal texts are soon compared; only a difference is worth a report. */
function same(found: readonly unknown[], expected: readonly unknown[]): void {
  if (found.join('\n') !== expected.join('\n')) expect(found).toEqual(expected);
}
