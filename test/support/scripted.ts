import { writeFileSync } from 'node:fs';
import type { Deck, DeckOptions, SessionEvent } from '@tapedeck/runtime';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import type { Entry, JsonObject, SqliteTapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { openDeck } from './deck.ts';
import { openStore } from './store.ts';
import { tempDir } from './temp-dir.ts';

/** A deck on a store in memory, whose models answer from a script. */
export interface ScriptedDeck extends AsyncDisposable {
  readonly deck: Deck;
  readonly store: SqliteTapeStore;
  /** The script, as `--model` takes it. */
  readonly spec: string;
  /** Another script. */
  script(answers: readonly ScriptAnswer[]): string;
}

export async function scriptedDeck(
  answers: readonly ScriptAnswer[],
  options: Omit<DeckOptions, 'home' | 'store'> & { readonly store?: SqliteTapeStore } = {},
): Promise<ScriptedDeck> {
  const dir = tempDir();
  let scripts = 0;
  const script = (given: readonly ScriptAnswer[]) => {
    scripts += 1;
    const file = dir.file(`script-${scripts}.json`);
    writeFileSync(file, JSON.stringify(given));
    return `script:${file}`;
  };
  const store = options.store ?? openStore();
  const spec = script(answers);
  const deck = await openDeck({ model: spec, ...options, store });
  return {
    deck,
    store,
    spec,
    script,
    [Symbol.asyncDispose]: async () => {
      await deck[Symbol.asyncDispose]();
      store.close();
      dir[Symbol.dispose]();
    },
  };
}

/** The events of a run or a delegation, once it is over. */
export async function eventsOf<T>(run: AsyncIterable<T>): Promise<T[]> {
  const events: T[] = [];
  for await (const event of run) events.push(event);
  return events;
}

/** Events as short texts: `text one `, `tool-started add`, `session-completed stop`. */
export function eventLine(event: SessionEvent): string {
  switch (event.type) {
    case 'content-chunk':
      return `text ${event.text}`;
    case 'reasoning-chunk':
      return `reasoning ${event.text}`;
    case 'tool-detected':
    case 'tool-started':
      return `${event.type} ${event.name}`;
    case 'tool-completed':
      return `${event.type} ${event.name} ${event.success ? 'well' : 'badly'}`;
    case 'iteration-completed':
      return `${event.type} ${event.iteration}${event.willContinue ? ' and on' : ''}`;
    case 'session-completed':
      return `${event.type} ${event.finish}${event.haltedAtLimit ? ' at the limit' : ''}`;
    case 'session-cancelled':
      return `${event.type} ${event.reason}`;
    default:
      return event.type;
  }
}

/** Entries as short texts: `user: hi`, `assistant: hm [add c1]`, `add c1 → 3`, `anchor task`, `event run/error`. */
export function entryLines(entries: Iterable<Entry>): string[] {
  return [...entries].map(entryLine);
}

function entryLine({ kind, name, payload }: Entry): string {
  if (!isObject(payload)) return kind;
  if (kind === 'message' && Array.isArray(payload.content))
    return `${payload.role}: ${payload.content.map(partText).join(' ')}`.trimEnd();
  if (kind === 'tool-result')
    return `${payload.toolName} ${payload.toolCallId} → ${outputText(payload.output)}`;
  return name === undefined ? kind : `${kind} ${name}`;
}

function partText(part: JsonObject): string {
  if (part.type === 'tool-call') return `[${part.toolName} ${part.toolCallId}]`;
  return typeof part.text === 'string' ? part.text : `<${part.type}>`;
}

function outputText(output: unknown): string {
  if (!isObject(output)) return JSON.stringify(output);
  const { type, value } = output;
  return `${type} ${typeof value === 'string' ? value : JSON.stringify(value)}`;
}

/** All that the sessions of a deck, their chunks and their inboxes say. */
export function written({ store }: Pick<ScriptedDeck, 'store'>): string {
  return JSON.stringify(
    store.sessions
      .list()
      .map((info) => [
        info,
        [...store.entries.read(info.id)],
        store.live.read(info.id),
        store.inbox.list(info.id),
      ]),
  );
}
