import type { CallName, RunResult, SessionEvent } from '@tapedeck/runtime';
import type { Entry } from '@tapedeck/tape';
import { isObject, totalOf } from '@tapedeck/tape/internal';
import { oneLine, safe } from '../escape.ts';
import { endLines, type Face, statusLines } from '../output/run.ts';
import { shortNumber } from '../terminal/number.ts';
import { makeStyle } from '../terminal/style.ts';
import { type CallPlace, callRows, outputRows } from '../transcript/item-rows.ts';
import type { Talk } from './talk.ts';

/**
 * How the runs of a turn look in a conversation: calls with their results below them, as in a log, and at the end what
 * the turn took.
 */
export function turnFace(talk: Talk): Face {
  const { io, style } = talk.context;
  const print = async (rows: readonly string[]) => {
    if (rows.length > 0) await io.out(rows.map((row) => `${row}\n`).join(''));
  };
  const took = { ms: 0, tokens: 0 };
  let startedAt = io.now();
  let thought = '';
  /** Calls run at once, and their results come in any order. */
  let isParallel = false;
  /** The call whose row is the last one. */
  let last: string | undefined;
  const callOf = ({ toolCallId: id, name }: CallName) => ({
    id,
    name,
    input: talk.calls.get(id)?.input ?? null,
  });
  const callRow = (event: CallName) => {
    last = event.toolCallId;
    return callRows(callOf(event), placeOf(talk));
  };
  const rowsOf = (event: SessionEvent): readonly string[] => {
    switch (event.type) {
      case 'tool-detected':
        talk.calls.set(event.toolCallId, event);
        return [];
      case 'tool-waiting':
        return [];
      case 'tool-batch-started':
        isParallel = event.parallel && event.calls.length > 1;
        return [];
      case 'tool-started': {
        if (!isParallel) return callRow(event);
        const started = callRows(callOf(event), { ...placeOf(talk), style: plain });
        return started.map((row) => style.text('dim', row));
      }
      case 'tool-completed': {
        const row = last === event.toolCallId ? [] : callRow(event);
        talk.calls.delete(event.toolCallId);
        const { seq = 0, payload } = resultOf(talk, event) ?? {};
        const output = isObject(payload) ? payload.output : event.output;
        return [...row, ...outputRows(output, { place: placeOf(talk), where: { seq } })];
      }
      case 'reasoning-chunk':
        thought += event.text;
        return [];
      case 'reasoning-ended': {
        const text = thought.trim();
        thought = '';
        return text === '' ? [] : [style.text(['dim', 'italic'], oneLine(`(${text})`, io.columns))];
      }
      default:
        return statusLines(event).map((line) => style.text('dim', safe(line)));
    }
  };
  return {
    event: async (event) => {
      if (event.type === 'run-started') startedAt = io.now();
      await print(rowsOf(event));
    },
    end: async (result) => {
      const { finish, nothingToContinue, usage } = result;
      took.ms += io.now() - startedAt;
      took.tokens += totalOf(usage);
      // The turn continues when the user has answered.
      if (finish === 'waiting') return;
      const lines = finish === 'stop' ? [] : [...endLines(result), 'Hint: continue it with: /continue'];
      const foot = nothingToContinue === true ? 'Nothing to continue' : tookText(talk, result, took);
      await print([...lines.map(safe), style.text('dim', foot)]);
    },
  };
}

const plain = makeStyle(false);

/** Entries among which the result of a call is, when the event of it comes. */
const resultsNear = 50;

/** The result of a call, as its tape has it. */
function resultOf({ store, session }: Talk, { toolCallId }: CallName): Entry | undefined {
  const last = [...store.entries.read(session.id, { kind: 'tool-result', last: resultsNear })];
  return last.find(({ payload }) => isObject(payload) && payload.toolCallId === toolCallId);
}

/** The place of the rows of calls. */
export function placeOf({
  context: { io, style, inHome },
  session,
}: Pick<Talk, 'context' | 'session'>): CallPlace {
  return {
    style,
    columns: io.columns,
    first: io.columns,
    full: false,
    find: undefined,
    session: session.name,
    inHome,
  };
}

/** The model of a turn, its tokens, and its time. */
function tookText(
  { store, session }: Talk,
  { from, to }: RunResult,
  { ms, tokens }: { readonly ms: number; readonly tokens: number },
): string {
  let model = '';
  for (const { meta } of store.entries.read(session.id, { from, to, kind: 'message' }))
    if (typeof meta.model === 'string') model = oneLine(meta.model, 60);
  const seconds = ms < 10_000 ? (ms / 1000).toFixed(1) : String(Math.round(ms / 1000));
  const parts = [model, tokens === 0 ? '' : `${shortNumber(tokens)} tokens`, `${seconds} s`];
  return parts.filter((text) => text !== '').join(' · ');
}
