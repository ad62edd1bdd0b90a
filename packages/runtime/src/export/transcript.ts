import { existsSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Entry } from '@tapedeck/tape';
import { importedEvent, importOriginBy, isObject, isOmission, isPrune } from '@tapedeck/tape/internal';
import { sha256 } from '@tapedeck/tape/store';
import { type ExportSource, shownEntries } from './contexts.ts';

/** A form that another program opens to go on with the session. */
export type TranscriptForm = 'claude-code' | 'pi';

/** A transcript for another program. */
export interface Transcript {
  /** The id of the session there. */
  readonly id: string;
  /** The directory in which the session works. */
  readonly project: string;
  /** The branch of its repository, where the tape says so. */
  readonly branch?: string;
  /** When its last entry was written, in milliseconds since 1970. */
  readonly at: number;
}

/** Which transcript of a session to write. */
export interface TranscriptOptions {
  readonly form: TranscriptForm;
  /** Default: the last directory that the tape names, if it is there, or else that of the process. */
  readonly project?: string | undefined;
  /** The directory of the process. */
  readonly cwd?: string;
}

/**
 * The transcript that an export writes. A session that was imported whole, and has not changed here since, keeps its id; any
 * other gets one that the same entries always get. Reads the session once.
 */
export async function transcriptFor(
  source: ExportSource,
  { form, project, cwd = process.cwd() }: TranscriptOptions,
): Promise<Transcript> {
  let [last, at, hasChanged] = ['', source.info.createdAt, false];
  let place: { readonly cwd?: string; readonly branch?: string } = {};
  for await (const entry of shownEntries(source)) {
    [last, at] = [entry.hash, entry.sourceAt ?? entry.at];
    place = { ...place, ...placeIn(entry) };
    hasChanged ||= isOwnWork(entry);
  }
  const imported = await sessionOfImport(source, form);
  const recorded = place.cwd !== undefined && existsSync(place.cwd) ? place.cwd : undefined;
  const directory = resolve(project ?? recorded ?? cwd);
  const isThere = directory === place.cwd;
  return {
    id: imported !== undefined && !hasChanged ? imported : uuidFrom(`${source.info.id}:${last}`),
    project: realPath(directory),
    ...(isThere && place.branch !== undefined && { branch: place.branch }),
    at,
  };
}

/** Where an entry says that the session worked. */
function placeIn({ meta: { place } }: Entry): { readonly cwd?: string; readonly branch?: string } {
  if (!isObject(place) || typeof place.cwd !== 'string') return {};
  const branch = isObject(place.git) && typeof place.git.branch === 'string' ? place.git.branch : undefined;
  return { cwd: place.cwd, ...(branch !== undefined && { branch }) };
}

/** Whether an entry changes what a view shows, and came from no import. */
function isOwnWork(entry: Entry): boolean {
  const { kind, mark, meta } = entry;
  if (meta.source === 'import' || (meta.source === 'merge' && meta.context === false)) return false;
  return (
    kind === 'message' || kind === 'tool-result' || mark === 'boundary' || isPrune(entry) || isOmission(entry)
  );
}

/** The id that a session had in the program, if it shows all that was imported of it. */
async function sessionOfImport(
  { store, info }: ExportSource,
  form: TranscriptForm,
): Promise<string | undefined> {
  const [origin] = await Array.fromAsync(
    store.entries.read(info.id, { own: true, name: importedEvent, limit: 1 }),
  );
  const { format, session, conversation } = importOriginBy(origin) ?? {};
  if (format !== form || typeof session !== 'string' || conversation !== undefined) return undefined;
  // It becomes the name of a file, and these programs make no other.
  if (!uuid.test(session)) return undefined;
  const now = await store.sessions.find(info.id);
  const rewinds = await Array.fromAsync(store.entries.read(info.id, { own: true, kind: 'rewind' }));
  const isRewound = rewinds.some(({ payload }) => !isObject(payload) || payload.mode !== 'import');
  return now?.head === info.head && !isRewound ? session : undefined;
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The path without links, as programs see their working directory; the path itself where there is no such directory. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** A uuid that is made from a text: of version 8, which says that its maker chose the bits. */
export function uuidFrom(seed: string): string {
  const hex = sha256(seed);
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 3) | 8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
}

/** The environment and the home directory in which a program looks for its transcripts. */
export interface TranscriptHome {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}

/** Where a program looks for a transcript of a project. */
export function transcriptPath(
  form: TranscriptForm,
  { id, project, at }: Transcript,
  { env, home }: TranscriptHome = { env: process.env, home: homedir() },
): string {
  if (form === 'claude-code')
    return join(
      env.CLAUDE_CONFIG_DIR || join(home, '.claude'),
      'projects',
      claudeName(project),
      `${id}.jsonl`,
    );
  const time = new Date(at).toISOString().replace(/[:.]/g, '-');
  const sessions = join(env.PI_CODING_AGENT_DIR || join(home, '.pi/agent'), 'sessions');
  const folder = `--${project.replace(/^[/\\]/, '').replace(/[/\\:]/g, '-')}--`;
  return join(env.PI_CODING_AGENT_SESSION_DIR || join(sessions, folder), `${time}_${id}.jsonl`);
}

/** The folder of a project, as Claude Code names it: a long name is cut, and ends with a number of the whole. */
function claudeName(project: string): string {
  const name = project.replace(/[^a-zA-Z0-9]/g, '-');
  if (name.length <= 200) return name;
  let sum = 0;
  for (let i = 0; i < project.length; i += 1) sum = ((sum << 5) - sum + project.charCodeAt(i)) | 0;
  return `${name.slice(0, 200)}-${Math.abs(sum).toString(36)}`;
}

/** The command by which a user goes on in the program. */
export function resumeCommand(form: TranscriptForm, { id }: Transcript, path: string): readonly string[] {
  return form === 'claude-code' ? ['claude', '--resume', id] : ['pi', '--session', path];
}
