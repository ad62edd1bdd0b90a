import { type HomeStore, note } from '@tapedeck/tape';
import { importOriginIn, isDeleted, sourceGoneEvent } from '@tapedeck/tape/internal';
import { appendBeside } from '../edges/beside.ts';
import type { Reconciled } from '../import/reconciled.ts';
import { knownSessionsIn } from '../imported/known-sessions.ts';
import { Origins } from '../imported/origins.ts';
import type { TranscriptTool } from '../plan/format.ts';
import type { Source, SourceTable } from '../sources/index.ts';
import { isFileError } from './file-import.ts';
import { readConversation } from './read-conversation.ts';
import { transcriptTools } from './tools.ts';

/**
 * Marks the sessions of sources whose files are gone, unless they were seen elsewhere: the tapes are then all that is left of
 * them. A session goes with the main file of its conversation, but for a subagent whose own file is still there. Records the
 * sources as gone once the tapes say so. A conversation of which a process has a session is left to the next import. Returns the
 * names of the sessions that it marked.
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
    const isLost = source.forgottenAt === undefined && !table.of({ ...main, path: '' }).some(isThere);
    const fresh = (isLost ? origins.allOf(main) : []).filter(
      (one) => one.sourceGone === undefined && !isDeleted(one),
    );
    const held = fresh.length === 0 ? new Set() : await conversationsOf(left.get(name) ?? [], tools);
    const alone = fresh.filter(({ id }) => !held.has(conversationOf(store, id)));
    const refusals = alone.map(({ id }) => say(store, id, { file: source.path }));
    marked.push(...alone.filter((_, i) => refusals[i] === undefined).map(({ session }) => session));
    if (!refusals.includes('TAPE_BUSY')) settled.push(...own.map((one) => ({ ...one, goneAt: at })));
  }
  table.put(settled);
  knownSessionsIn(store).save();
  return marked;
}

/** The conversation of its source that a session is, whichever of several. */
function conversationOf(store: HomeStore, id: string): string {
  const { conversation } = importOriginIn(store, id)?.origin ?? {};
  return String(conversation).replace(/#\d+$/, '');
}

/** The conversations that files of a session have, without its main file. What cannot be read has none. */
async function conversationsOf(
  sources: readonly Source[],
  tools: readonly TranscriptTool[],
): Promise<ReadonlySet<unknown>> {
  const [first] = sources;
  const tool = tools.find(({ name }) => name === first?.tool);
  if (first === undefined || tool === undefined) return new Set();
  const files = sources.map(({ path, session, main, role, ...facts }) => ({
    ...{ path, session, main, role, tool, facts },
  }));
  try {
    return await readConversation({ tool, files }, (plan) => {
      const read = new Set(plan.files.values());
      return new Set(plan.conversations.filter(({ file }) => read.has(file)).map(({ key }) => key));
    });
  } catch (error) {
    if (!isFileError(error)) throw error;
    return new Set();
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
