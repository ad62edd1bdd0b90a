import type { HomeStore, Redact, Secret } from '@tapedeck/tape';
import { saveText } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { printed, withheldText } from '../export/form.ts';
import { counted } from '../output/counted.ts';
import { withProgress } from '../output/progress.ts';
import { packageVersion } from '../package-file.ts';
import { type Checked, fitting, type Scope, wholeJson } from '../page/page.ts';
import { checkJson } from '../session/checked.ts';
import { needSession } from '../session/place.ts';
import { htmlFile } from './html-file.ts';

/** What is exported, and to which file; without one, to stdout. */
interface ExportingHtml {
  readonly store: HomeStore;
  readonly id: string;
  readonly scope: Scope;
  readonly file: string | undefined;
}

/** Writes the page of sessions as one file, and prints what was written. */
export async function exportHtml(
  { store, id, scope, file }: ExportingHtml,
  how: { readonly raw: boolean; readonly secrets: readonly Secret[]; readonly redact?: Redact },
  { io, home, answer, status, ...context }: Context,
): Promise<number> {
  const { checkSome, cleaner } = await import('@tapedeck/runtime/internal');
  const { raw, secrets, redact = 'all' } = how;
  const clean = raw ? <T>(value: T): T => value : cleaner({ secrets, redact });
  const { session } = needSession(store, id);
  const source = {
    ...{ store, title: session, version: packageVersion(), now: () => io.now() },
    // Who gets the file has another home, and need not know where this one is.
    inHome: (line: string) => line,
  };
  const made = await withProgress({ io, home, ...context }, async (progress) => {
    // A terminal shows the text itself.
    const onProgress = file === undefined && io.isTerminal ? undefined : progress('Exporting entries');
    const data = wholeJson(source, {
      ...{ session: id, scope, clean },
      check: async (sessions, of) => checkJson(await checkSome(store, sessions, of)) as unknown as Checked,
      ...(onProgress !== undefined && { onProgress }),
    });
    const page = htmlFile(clean(session), fitting(session, data));
    return file === undefined ? await printed(page, io.out) : await saveText(file, page);
  });
  const { sessions = 0, items = 0, redacted = 0 } = made ?? {};
  if (file !== undefined)
    await answer({
      json: { file, session, format: 'html', items, withheld: redacted, sessions },
      quiet: file,
      human: `Exported ${session} to ${file}: ${counted(sessions, 'session')}, ${counted(items, 'row')}`,
    });
  if (redacted > 0) status(withheldText(redacted));
  return 0;
}
