import { basename, join } from 'node:path';
import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { given, isJsonLines, type Place, type TranscriptTool } from '../plan/format.ts';

/** A tool whose transcripts are recognised by their records or their name, and not read yet. */
function recognised(
  about: Pick<TranscriptTool, 'name' | 'title' | 'file' | 'roots'> & {
    readonly has?: (path: string) => boolean;
    readonly hasRecord: (record: JsonObject) => boolean;
    /** The id that a header gives to its session: null where it gives none. */
    readonly sessionIn?: (first: JsonObject) => unknown;
    /** Whether a file is one of its own, whatever is in it. */
    readonly isNamed?: (path: string) => boolean;
  },
): TranscriptTool {
  const { sessionIn, isNamed, has = isJsonLines, ...rest } = about;
  return {
    ...rest,
    has,
    identify: (records, path) => {
      const [first] = records;
      const session = first && sessionIn?.(first);
      // A file may begin in the middle of what a tool has written.
      const isOwn = session !== undefined || records.some(about.hasRecord) || isNamed?.(path) === true;
      if (!isOwn) return undefined;
      const text = typeof session === 'string' ? session : basename(path);
      return { session: text, role: 'main', main: text };
    },
  };
}

/** The types of the records of Codex, whose content is in `payload`. */
const envelopes: ReadonlySet<unknown> = new Set([
  'session_meta',
  'turn_context',
  'response_item',
  'event_msg',
  'compacted',
  'world_state',
]);

const data = (place: Place) => given(place.env.XDG_DATA_HOME) ?? join(place.home, '.local', 'share');

/** A record of Gemini CLI: the header of a session, an answer, a saved conversation, or what the service said. */
function isOfGemini({
  type,
  id,
  projectHash,
  sessionId,
  history,
  lastUpdated,
  method,
  response,
}: JsonObject) {
  return (
    (typeof projectHash === 'string' && typeof sessionId === 'string') ||
    (type === 'gemini' && typeof id === 'string') ||
    (Array.isArray(history) && typeof lastUpdated === 'string') ||
    (/^generateContent/.test(String(method)) && Array.isArray(response))
  );
}

/** A database of opencode. */
const database = /(?:^|[/\\])opencode[^/\\]*\.db$/;

/** A file of an earlier opencode, which had one for each session, and one for each message and each part of it. */
const earlier =
  /(?:^|[/\\])storage[/\\](?:session|message|part)[/\\][^/\\]+[/\\](?:ses|msg|prt)_[^/\\]*\.json$/;

/** One of a session, which stands for all that it has. */
const earlierSession = /(?:^|[/\\])ses_[^/\\]*$/;

/** Tools whose transcripts are found, counted and named, and not read yet. */
export const laterTools: readonly TranscriptTool[] = [
  recognised({
    name: 'codex',
    title: 'Codex',
    file: 'a Codex rollout',
    roots: (place) => {
      const home = given(place.env.CODEX_HOME) ?? join(place.home, '.codex');
      return [join(home, 'sessions'), join(home, 'archived_sessions')];
    },
    hasRecord: ({ type, payload }) => envelopes.has(type) && isObject(payload),
    sessionIn: ({ type, payload, id, instructions }) => {
      if (type === 'session_meta' && isObject(payload)) return payload.id ?? null;
      // The first version had the header alone on its line.
      return typeof id === 'string' && instructions !== undefined ? id : undefined;
    },
  }),
  recognised({
    name: 'pi',
    title: 'pi',
    file: 'a pi session',
    roots: (place) => {
      const sessions = given(place.env.PI_CODING_AGENT_SESSION_DIR);
      if (sessions !== undefined) return [sessions];
      return [join(given(place.env.PI_CODING_AGENT_DIR) ?? join(place.home, '.pi', 'agent'), 'sessions')];
    },
    hasRecord: ({ type, id, cwd, parentId, message }) =>
      (type === 'session' && typeof id === 'string' && typeof cwd === 'string') ||
      (type === 'message' && typeof id === 'string' && parentId !== undefined && isObject(message)),
    sessionIn: ({ type, id, cwd }) =>
      type === 'session' && typeof cwd === 'string' ? (id ?? null) : undefined,
  }),
  recognised({
    name: 'gemini-cli',
    title: 'Gemini CLI',
    file: 'a Gemini CLI session',
    roots: (place) => [join(given(place.env.GEMINI_CLI_HOME) ?? place.home, '.gemini', 'tmp')],
    has: (path) => /[/\\](?:chats[/\\].*\.jsonl?|session-[^/\\]*\.json)$/.test(path),
    hasRecord: (record) => isOfGemini(record),
    sessionIn: ({ sessionId, projectHash }) =>
      typeof projectHash === 'string' ? (sessionId ?? null) : undefined,
  }),
  recognised({
    name: 'opencode',
    title: 'opencode',
    file: 'a file of opencode',
    roots: (place) => [join(data(place), 'opencode')],
    has: (path) => database.test(path) || (earlier.test(path) && earlierSession.test(path)),
    hasRecord: () => false,
    isNamed: (path) => database.test(path) || earlier.test(path),
  }),
];

/** Files of tools that are known by name alone, by their paths and first records. */
const strangers: readonly (readonly [path: RegExp, record: (first: JsonObject) => boolean, what: string])[] =
  [
    [
      /[/\\]\.copilot[/\\]/,
      ({ type, data }) =>
        type === 'session.start' && isObject(data) && /copilot/i.test(String(data.producer)),
      'a Copilot session',
    ],
    [/[/\\]\.cursor[/\\]/, () => false, 'a Cursor session'],
    [/[/\\]\.qwen[/\\]/, () => false, 'a Qwen Code session'],
    [/[/\\]\.kimi[/\\]/, () => false, 'a Kimi session'],
    [/[/\\]\.factory[/\\]/, () => false, 'a Droid session'],
    [/[/\\]\.grok[/\\]/, () => false, 'a Grok session'],
    [/[/\\]amp[/\\]threads[/\\]/, () => false, 'an Amp thread'],
    [/[/\\]goose[/\\]sessions[/\\]/, () => false, 'a Goose session'],
    [/[/\\]\.openclaw[/\\]/, () => false, 'an OpenClaw session'],
  ];

/** What a file looks like that no tool has recognised; undefined if it looks like nothing known. Pure. */
export function looksLike(records: readonly JsonObject[], path: string): string | undefined {
  const [first] = records;
  return strangers.find(([place, record]) => place.test(path) || (first !== undefined && record(first)))?.[2];
}

/** Whether a file is the list of what its user typed, which Claude Code and Codex keep beside their transcripts. Pure. */
export function isHistory([first]: readonly JsonObject[], path: string): boolean {
  if (basename(path) !== 'history.jsonl' || first === undefined) return false;
  const { display, project, session_id: session, text } = first;
  return [display, project].every(isText) || [session, text].every(isText);
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}
