/**
 * Erases what was taken from a source, for `tape import --forget`: `sources-meant.ts` finds what the user named, `holdings.ts` the
 * sessions that have content of it, also as copies, and `unread-records.ts` what its files have beyond the tapes, of which
 * `remember.ts` keeps nothing but that it was forgotten. Imports `import`, `session` and what lies below.
 */
import { redactIn } from '../config/redact.ts';
import type { Context } from '../context.ts';
import { commandLine, shellLine } from '../escape.ts';
import { exit } from '../exit.ts';
import { knownSources } from '../import/known-sources.ts';
import { counted } from '../output/counted.ts';
import { erasing, whileShown } from '../output/progress.ts';
import { contentLeft, mayContain, trafficOf } from '../session/traffic.ts';
import { type Holding, holdingsOf, idOf, inTurn, isSame, leftIn, type Origin } from './holdings.ts';
import { sourcesMeant } from './sources-meant.ts';
import type { UnreadRecords } from './unread-records.ts';

/** What the redactions of a forgotten source say. */
const reason = 'its source was forgotten';

/** How many entries lose their content at once: others can write in between. */
const atOnce = 20_000;

/**
 * Erases what was imported of a source, and remembers on its tapes not to take it again. `named`: a file or a folder, the tool's id
 * of a session, or the name of a session here. A conversation is forgotten as a whole, with its branches and subagents, under each
 * path where it was seen, and with what copies of it have in other sessions.
 * @throws NotFoundError for what is no source
 * @throws UsageError for what can be two
 */
export async function forgetSource(
  named: string,
  { dryRun = false }: { readonly dryRun: boolean | undefined },
  context: Context,
): Promise<number> {
  const { io, home, reading, writing, answer, status, inHome } = context;
  const { cleanerFor } = await import('@tapedeck/runtime/import');
  const table = await knownSources(home);
  const { sources, origins } = await sourcesMeant(named, table, context);
  await (dryRun ? reading : writing)(async (store) => {
    const { filedIn, originOf, takeUnread } = await import('./unread-records.ts');
    const { markForgotten, notInherited, rememberApart } = await import('./remember.ts');
    const filed = await filedIn(sources, table, context);
    const { look, content } = await holdingsOf(store, origins, filed.isWhole);
    const lookFor = async () => await whileShown(context, 'Looking for copies', look);
    const before = await lookFor();
    const sessions = Map.groupBy(before.filter(isOwn), ({ origin }) => idOf(origin));
    const isBare = (origin: Origin) => !sessions.has(idOf(origin));
    const bare = new Map(origins.filter(isBare).map((one) => [idOf(one), one]));
    // What a fork has of others, its files say.
    const isFork = (origin: Origin) => sessions.get(idOf(origin))?.some((one) => one.isFork) === true;
    const unread = filed.conversations.filter(
      (one) => filed.hasNew(one) || isBare(originOf(one)) || isFork(originOf(one)),
    );
    const isMeant = ({ origin }: { readonly origin: Origin }) => origins.some((one) => isSame(one, origin));
    const left = leftIn(store).filter(isMeant);
    // Remembered first: a process that is killed in between erases the rest when it is repeated. An import that is under way looks
    // into the table when the tapes say so.
    if (!dryRun) {
      const at = io.now();
      table.forget(sources.map(({ project: _, first: __, ...rest }) => ({ forgottenAt: at, ...rest })));
    }
    const clean = cleanerFor((await redactIn(context)) ?? true);
    const onTaken = ({ origin, drafts }: UnreadRecords) => {
      if (dryRun) return;
      const left = notInherited(store, sessions.get(idOf(origin)) ?? [], drafts);
      if (left.length > 0 || isBare(origin)) rememberApart(store, { origin, drafts: left }, reason);
    };
    await takeUnread(unread, { content, clean, onTaken }, context);
    const read = new Set(unread.map((one) => idOf(originOf(one))));
    for (const [id, origin] of bare) if (!read.has(id)) onTaken({ origin, drafts: [] });
    // An import that was under way can have made a session before that was remembered.
    const known = new Set(before.map(({ id }) => id));
    const isThere = ({ id, isCopy, isDeleted }: Holding) => isCopy || !isDeleted || known.has(id);
    const found = bare.size + unread.length > 0 ? (await lookFor()).filter(isThere) : before;
    let isWiped: boolean | undefined;
    if (!dryRun) {
      markForgotten(store, found.filter(isOwn));
      const erase = async (holdings: readonly Holding[]) => {
        for (const { id, seqs } of inTurn(holdings))
          for (let from = 0; from < seqs.length; from += atOnce) {
            const some = seqs.slice(from, from + atOnce);
            await whileShown(context, erasing, () => store.entries.redact(id, some, reason, { wipe: false }));
          }
      };
      await erase(found);
      // An import that was under way can have written what it read just before it saw that the source was forgotten, or a copy erased.
      await erase(await lookFor());
      // What killed imports left of other sources can have copies. One that is under way begins anew, since something was erased.
      // Last, and with nothing to discard, too: it wipes what was erased before it, also by an act that was killed.
      isWiped = store.imports.discard(leftIn(store).map(({ id }) => id)).wiped;
    }
    const touched = found.filter(({ isCopy, seqs }) => !isCopy || seqs.length > 0);
    const counts = [...found.map(({ seqs }) => seqs.length), ...left.map((one) => one.entries)];
    const entries = counts.reduce((sum, n) => sum + n, 0);
    const names = [...new Set([...touched, ...left].map(({ session }) => session))];
    const files = sources.map(({ path }) => path);
    const quotedBy = await trafficOf(store, home, new Set(touched.map(({ id }) => id)));
    if (isWiped === false)
      status(
        inHome(
          contentLeft(home, `try again with: ${commandLine('import', [], ['--forget', shellLine(named)])}`),
        ),
      );
    await answer({
      json: {
        ...{ forgotten: files, names, entries, quoted_by: quotedBy },
        ...(dryRun ? { dry_run: true } : { log_emptied: isWiped }),
      },
      quiet: files.join('\n'),
      human: `${dryRun ? 'Would forget' : 'Forgot'} ${counted(files.length, 'file')}, and ${dryRun ? 'erase' : 'erased'} ${counted(entries, 'entry', 'entries')} of ${counted(names.length, 'session')}${dryRun ? '' : ', which cannot be undone'}${mayContain(quotedBy)}`,
    });
  });
  return exit.done;
}

/** Whether a session was imported from what is forgotten. */
function isOwn({ isCopy }: Holding): boolean {
  return !isCopy;
}
