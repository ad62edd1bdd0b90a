import { type HomeStore, note, type SessionInfo } from '@tapedeck/tape';
import { importOriginIn, isDeleted, sourceGoneEvent } from '@tapedeck/tape/internal';
import { appendBeside } from '../edges/beside.ts';
import type { Reconciled } from '../import/reconciled.ts';
import { withAncestors } from '../imported/ancestors.ts';
import { knownSessionsIn } from '../imported/known-sessions.ts';
import { Origins } from '../imported/origins.ts';
import type { TranscriptTool } from '../plan/format.ts';
import type { Source, SourceTable } from '../sources/index.ts';
import { isFileError } from './file-import.ts';
import { readConversation } from './read-conversation.ts';
import { transcriptTools } from './tools.ts';

/**
 * Marks the sessions of sources whose files are gone, unless they were seen elsewhere: the tapes are then all that is left of
 * them. A session goes with the main file of its conversation, but for a subagent whose own file is still there, and a subagent
 * goes with its own. Records the sources as gone once the tapes say so. A conversation of which a process has a session is left to
 * the next import. Returns the names of the sessions that it marked.
 * @param tools those that know the files
 */
export async function markSessionsGone(
  store: HomeStore,
  gone: readonly Source[],
  table: Pick<SourceTable, 'all' | 'of' | 'put' | 'sessionsFile'>,
  at: number,
  tools: readonly TranscriptTool[] = transcriptTools,
): Promise<readonly string[]> {
  knownSessionsIn(store).keepIn(table.sessionsFile);
  const origins = new Origins(store);
  const paths = new Set(gone.map(({ path }) => path));
  const isThere = ({ path, goneAt }: Source) => goneAt === undefined && !paths.has(path);
  const nameOf = ({ tool, main }: Source) => `${tool} ${main}`;
  const left = Map.groupBy(table.all.filter(isThere), nameOf);
  const marked: string[] = [];
  const settled: Source[] = [];
  for (const [name, own] of Map.groupBy(gone, nameOf)) {
    // That of the conversation says where all of it was.
    const [source] = own.toSorted((a, b) => Number(b.role === 'main') - Number(a.role === 'main'));
    if (source === undefined) continue;
    const main = { tool: source.tool, session: source.main };
    const isLost = !table.of({ ...main, path: '' }).some(isThere);
    const mayGo = (one: SessionInfo) => one.sourceGone === undefined && (isLost || isOfAgent(store, one));
    const hasAny = source.forgottenAt === undefined && own.some(({ role }) => isLost || role === 'subagent');
    const fresh = (hasAny ? origins.allOf(main) : []).filter((one) => mayGo(one) && !isDeleted(one));
    const held = fresh.length === 0 ? new Set() : await conversationsOf(left.get(name) ?? [], tools);
    // What the transcript has could not be read: the next import says what is gone.
    if (held === undefined && !isLost) continue;
    const alone = fresh.filter(({ id }) => held?.has(conversationOf(store, id)) !== true);
    const fileOf = ({ session }: SessionInfo) =>
      (own.find((one) => one.session.endsWith(`/${session}`)) ?? source).path;
    const refusals = alone.map((one) => say(store, one.id, { file: fileOf(one) }));
    marked.push(...alone.filter((_, i) => refusals[i] === undefined).map(({ session }) => session));
    if (!refusals.includes('TAPE_BUSY')) settled.push(...own.map((one) => ({ ...one, goneAt: at })));
  }
  table.put(settled);
  knownSessionsIn(store).save();
  return marked;
}

/** Whether a session is a subagent, or a branch of one. */
function isOfAgent(store: HomeStore, { id }: SessionInfo): boolean {
  return withAncestors(store, id).some((one) => store.sessions.find(one)?.kind === 'subagent');
}

/** The conversation of its source that a session is, whichever of several. */
function conversationOf(store: HomeStore, id: string): string {
  const { conversation } = importOriginIn(store, id)?.origin ?? {};
  return String(conversation).replace(/#\d+$/, '');
}

/** The conversations that files of a session have; undefined where they cannot be read. */
async function conversationsOf(
  sources: readonly Source[],
  tools: readonly TranscriptTool[],
): Promise<ReadonlySet<unknown> | undefined> {
  const tool = tools.find(({ name }) => name === sources[0]?.tool);
  if (tool === undefined) return new Set();
  const files = sources.map(({ path, session, main, role, ...facts }) => ({
    ...{ path, session, main, role, tool, facts },
  }));
  const others = files.filter(({ role }) => role !== 'main');
  const each = files.filter(({ role }) => role === 'main').map((main) => [main, ...others]);
  const held = new Set<unknown>();
  try {
    for (const some of each.length === 0 ? [others] : each)
      await readConversation({ tool, files: some }, (plan) => {
        const read = new Set(plan.files.values());
        for (const { key, file } of plan.conversations) if (read.has(file)) held.add(key);
      });
    return held;
  } catch (error) {
    if (!isFileError(error)) throw error;
    return undefined;
  }
}

/** Takes the mark from sessions that an import has found in a file again. */
export function markSessionsBack(store: HomeStore, found: readonly Reconciled[]): void {
  for (const { session, created, refused } of found) {
    if (created || refused !== undefined) continue;
    const { id, sourceGone: file } = store.sessions.find(session) ?? {};
    if (id !== undefined && file !== undefined) say(store, id, { file, back: true });
  }
}

/** Says on a tape whether its source is there. Returns the code with which the tape refuses it. */
function say(
  store: HomeStore,
  id: string,
  payload: { readonly file: string; readonly back?: true },
): string | undefined {
  const before = [...store.entries.read(id, { own: true, name: sourceGoneEvent })].length;
  const key = `import:gone:${before + 1}`;
  return appendBeside(store, id, [{ ...note(sourceGoneEvent, payload), key }])?.code;
}
