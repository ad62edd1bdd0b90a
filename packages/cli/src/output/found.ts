import type { Discovery, FileImport, FoundFile } from '@tapedeck/runtime/import';
import { pathText } from '../escape.ts';
import { isoDay } from '../terminal/time.ts';
import { counted } from './counted.ts';
import { bytesText } from './refused.ts';
import { tabbed, table } from './table.ts';

/** What was found of one tool, as much as is shown of it. */
interface Found {
  readonly tool: string;
  readonly title: string;
  readonly isRead: boolean;
  readonly conversations: number;
  readonly files: number;
  readonly newFiles: number;
  readonly bytes: number;
  readonly newBytes: number;
  readonly oldest: number;
}

/** Where a text is shown: on a terminal its columns are aligned. */
export interface Shown {
  readonly isTerminal: boolean;
  readonly columns: number | undefined;
}

/** What was found on this machine, a line per tool, and what would be imported of it. */
export function foundText(tools: readonly Found[], passed: Passed, shown: Shown): string {
  const others = passedText(passed);
  if (tools.length === 0 && others.length === 0) return 'No transcripts found';
  return [...(tools.length > 0 ? [toolsText(tools, shown)] : []), ...others].join('\n');
}

/** The same without what is not imported, which an import names at its end. */
export function toolsText(tools: readonly Found[], { isTerminal, columns }: Shown): string {
  const rows = tools.map(({ title, files, bytes, oldest, ...tool }) => [
    title,
    counted(files, 'file'),
    bytesText(bytes),
    `since ${isoDay(oldest)}`,
    tool.isRead
      ? `${counted(tool.newFiles, 'file')} to read, ${bytesText(tool.newBytes)}`
      : 'recognised, not yet read',
  ]);
  return isTerminal ? table({ rows, width: columns, least: 12, whole: [3] }) : tabbed(rows);
}

/** What is not imported, and is no failure. */
export interface Passed extends Pick<Discovery, 'strangers' | 'excluded' | 'empty'> {
  /** How many files are of conversations that were forgotten. */
  readonly forgotten: number;
  /** Those that are named, and left out by an option, as `--project`. */
  readonly narrowed: Narrowed;
}

/** Files that an option leaves out. */
export interface Narrowed {
  readonly by: string;
  readonly files: readonly FoundFile[];
}

/** What is not imported, on a line for each reason. */
export function passedText({ strangers, excluded, empty, forgotten, narrowed }: Passed): readonly string[] {
  const [first] = strangers;
  const such = strangers.length === 1 ? ':' : ', such as';
  return [
    ...(first === undefined
      ? []
      : [`${counted(strangers.length, 'file')} of no tool that is known${such} ${pathText(first.path)}`]),
    ...(empty > 0 ? [`${counted(empty, 'file')} without content`] : []),
    ...(excluded > 0 ? [`${excluded} left out by patterns`] : []),
    ...(forgotten > 0 ? [`${counted(forgotten, 'file')} left out as forgotten`] : []),
    ...narrowedText(narrowed),
  ];
}

function narrowedText({ by, files }: Narrowed): readonly string[] {
  const [first] = files;
  if (first === undefined) return [];
  const why = by.includes('--project') ? `, whose session ${placeOf(first)}` : '';
  const such = files.length === 1 ? ':' : ', such as';
  return [`${counted(files.length, 'file')} left out by ${by}${such} ${pathText(first.path)}${why}`];
}

/** Why an option leaves out a file. Pure. */
export function whyNarrowed({ by }: Pick<Narrowed, 'by'>, file: FoundFile): string {
  return by.includes('--project') ? `left out by ${by}: its session ${placeOf(file)}` : `left out by ${by}`;
}

function placeOf({ project }: FoundFile): string {
  return project === undefined ? 'names no directory' : `was in ${pathText(project)}`;
}

/** The same as data. */
export function foundJson(
  tools: readonly Found[],
  { strangers, excluded, empty, forgotten }: Omit<Passed, 'narrowed'>,
): Readonly<Record<string, unknown>> {
  const byTool = tools.map(({ tool, isRead, conversations, files, bytes, newFiles, newBytes, oldest }) => ({
    ...{ tool, read: isRead, conversations, files, bytes, new_files: newFiles, new_bytes: newBytes },
    oldest: new Date(oldest).toISOString(),
  }));
  const unknown = strangers.map(({ path, like }) => ({ file: path, ...(like !== undefined && { like }) }));
  return { tools: byTool, unknown, excluded, forgotten, empty };
}

/** What an import brought, a line per tool. `isWhole`: whether nothing that was found was left out. */
export function importedText(tools: readonly Found[], done: readonly FileImport[], isWhole: boolean): string {
  const lines = tools.map(({ tool, title, isRead, files }) => {
    if (!isRead) return `${title}: ${counted(files, 'file')}, recognised and not yet read`;
    const own = done.filter(({ file }) => file.tool.name === tool);
    const entries = own.reduce((sum, one) => sum + entriesOf(one), 0);
    const brought = own.filter((one) => entriesOf(one) > 0 || isTakenPart(one)).length;
    const failed = own.filter(isLeftOut).length;
    const out = failed === 0 ? '' : `, ${failed} left out`;
    if (entries === 0) return `${title}: nothing new in ${counted(own.length, 'file')}${out}`;
    const redacted = own.reduce((sum, one) => sum + redactedOf(one), 0);
    const kept = redacted === 0 ? '' : `, ${counted(redacted, 'secret')} replaced`;
    const derived = own.reduce((sum, one) => sum + derivedOf(one), 0);
    const edges = derived === 0 ? '' : `, ${counted(derived, 'derived edge')} (tape log --derived)`;
    return `${title}: ${counted(entries, 'entry', 'entries')} from ${brought} of ${counted(own.length, 'file')}${kept}${edges}${out}`;
  });
  if (lines.length === 0) return isWhole ? 'No transcripts found' : 'Nothing to import';
  return lines.join('\n');
}

/** Whether a file was read whose content is with the entries of another one, such as the facts of a subagent. */
function isTakenPart({ file, seen, error }: FileImport): boolean {
  return file.role === 'part' && seen !== 'unchanged' && error === undefined;
}

/** Whether nothing of a file was taken: one session of several may take nothing. */
export function isLeftOut({ brought, lacking, error }: FileImport): boolean {
  return (
    error !== undefined && (brought?.sessions ?? lacking ?? []).every(({ refused }) => refused !== undefined)
  );
}

function entriesOf({ brought }: FileImport): number {
  return (brought?.sessions ?? []).reduce((sum, { added }) => sum + added, 0);
}

function derivedOf({ brought }: FileImport): number {
  return brought?.derived ?? 0;
}

function redactedOf({ brought }: FileImport): number {
  return (brought?.sessions ?? []).reduce((sum, one) => sum + one.redacted, 0);
}
