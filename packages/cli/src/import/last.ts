import type { FoundFile, Retention } from '@tapedeck/runtime/import';
import type { Expiring } from '@tapedeck/runtime/internal';
import { TapeError } from '@tapedeck/tape';
import { readSearched, userHome } from '../config/searched.ts';
import type { Context } from '../context.ts';
import { pathText } from '../escape.ts';
import { counted } from '../output/counted.ts';
import { bytesText } from '../output/refused.ts';
import { rowsOf } from '../session/checked.ts';
import type { Style } from '../terminal/style.ts';
import { isoDay, relativeTime } from '../terminal/time.ts';
import { dropUnlessHere, knownSources } from './known-sources.ts';

/** How the transcripts on this machine stand with the tapes of a home. */
export interface Imports {
  /** When the last import was, in milliseconds since 1970. */
  readonly last: number | undefined;
  readonly transcripts: number;
  /** Those that no tape has as they are now, and that their tool is about to delete. */
  readonly expiring: readonly Expiring[];
  readonly retentions: readonly {
    readonly tool: { readonly name: string; readonly title: string };
    readonly retention: Retention;
  }[];
}

/** What is known of imports; undefined when there was none, and there are no transcripts. */
export async function importsOf(context: Context): Promise<Imports | undefined> {
  const { io, home } = context;
  const { transcriptTools } = await import('@tapedeck/runtime/import');
  const { standingOf } = await import('@tapedeck/runtime/internal');
  const table = await knownSources(home);
  try {
    await dropUnlessHere(table, context);
  } catch (error) {
    // Who checks a database that cannot be read learns that behind this.
    if (!(error instanceof TapeError)) throw error;
  }
  const projects = new Set(table.all.flatMap(({ project }) => project ?? []));
  const place = { env: io.env, home: userHome(io), projects: [...projects] };
  const { exclude } = await readSearched({ ...context, status: () => {} });
  const known = (path: string) => table.at(path);
  const elsewhere = ({ tool, session, path }: FoundFile) => table.of({ tool: tool.name, session, path });
  const { ignored } = table;
  const search = { place, tools: transcriptTools, exclude, ignored, known, elsewhere };
  const { transcripts, expiring, retentions } = await standingOf(search, io.now());
  const last = table.lastImport;
  if (last === undefined && transcripts === 0) return undefined;
  const isWanted = ({ file: { tool, main } }: Expiring) => !table.isForgotten({ tool: tool.name, main });
  return { last, transcripts, expiring: expiring.filter(isWanted), retentions };
}

/** The same as data. */
export function importsJson({
  last,
  transcripts,
  expiring,
  retentions,
}: Imports): Readonly<Record<string, unknown>> {
  return {
    last: last === undefined ? null : new Date(last).toISOString(),
    transcripts,
    expiring: expiring.map(({ file: { path, tool, facts }, at }) => ({
      ...{ file: path, tool: tool.name, bytes: facts.size },
      deleted_from: new Date(at).toISOString(),
    })),
    retention: retentions.map(({ tool, retention: { days, startedIn, fault } }) => ({
      ...{ tool: tool.name, days },
      ...(startedIn !== undefined && { started_in: startedIn }),
      ...(fault !== undefined && { fault }),
    })),
  };
}

/** How many transcripts are about to be deleted that no tape has, and when the first of them is. */
export function expiringJson({ transcripts, expiring }: Imports): Readonly<Record<string, unknown>> {
  const [first] = expiring;
  if (first === undefined) return { transcripts, expiring: 0 };
  return { transcripts, expiring: expiring.length, deleted_from: new Date(first.at).toISOString() };
}

/** The same as text: when the last import was, and what would be lost without another one. */
export function importsText(
  { last, transcripts, expiring, retentions }: Imports,
  { now, style, columns, inHome }: Look,
): string {
  const next = inHome('next: tape import');
  const of = counted(transcripts, 'transcript');
  const none = expiring.length > 0 ? `none yet, of ${of}` : `none yet, of ${of} (${next})`;
  const rows = retentions.flatMap(({ tool, retention: { days, file, startedIn, fault } }) => {
    const own = expiring.filter((one) => one.file.tool.name === tool.name);
    const [first] = own;
    if (first === undefined) return [];
    const size = bytesText(own.reduce((sum, one) => sum + one.file.facts.size, 0));
    const what = `${counted(own.length, 'transcript')}, ${size}, not on a tape as ${own.length === 1 ? 'it is' : 'they are'} now`;
    const why = fault === undefined ? '' : ` (${fault}, in ${file})`;
    const [where, there] =
      startedIn === undefined ? ['', ''] : [` where it is started in ${pathText(startedIn)}`, ' there'];
    const kept = `${tool.title} keeps them for ${counted(days, 'day')}${where}${why}`;
    const from = first.at <= now ? `when ${tool.title} starts${there}` : `from ${isoDay(first.at)} on`;
    const text = `${what}: ${kept}, and deletes ${pathText(first.file.path)} ${from} (${next})`;
    return rowsOf({ id: 'expiring', text, color: 'yellow' }, { style, columns });
  });
  const when = last === undefined ? none : `last one ${relativeTime(last, now)}`;
  return [`${style.text('bold', 'imports')}: ${when}`, ...rows].join('\n');
}

interface Look {
  readonly now: number;
  readonly style: Style;
  readonly columns: number | undefined;
  readonly inHome: (text: string) => string;
}
