import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isObject } from '@tapedeck/tape/internal';
import type { Retention } from '../../plan/format.ts';

/** The days for which Claude Code keeps a transcript whose settings say nothing. */
const usual = 30;

/** Where the administrators of a machine keep settings of Claude Code, which come before those of the user. */
function managedDirectory(): string {
  const { platform } = process;
  if (platform === 'darwin') return '/Library/Application Support/ClaudeCode';
  return platform === 'win32' ? 'C:\\Program Files\\ClaudeCode' : '/etc/claude-code';
}

/** Where Claude Code has its settings. */
interface SettingsPlaces {
  /** Its directory, with the settings of the user. */
  readonly directory: string;
  /** That of the machine. */
  readonly managed?: string | undefined;
  /** The working directories in which it was started. */
  readonly projects?: readonly string[] | undefined;
}

/**
 * What the settings of Claude Code say: those of the machine, the last of their files first, or else those of the project in
 * which it is started, or else those of the user. Wherever it is started, it deletes the transcripts of all projects: so the
 * shortest time counts that one of them names. Today it takes whole numbers from 1 on, and deletes nothing while its settings
 * are invalid. To earlier versions 0 meant to keep none. So 0 counts as that, and the default counts in the place of what is
 * no number of days: it is better to warn in vain.
 */
export function retentionIn({ directory, managed, projects = [] }: SettingsPlaces): Retention {
  const own = join(directory, 'settings.json');
  const ofMachine = firstOf(managedFiles(managed ?? managedDirectory()).toReversed());
  if (ofMachine !== undefined) return ofMachine;
  let shortest = retentionOf(own) ?? { days: usual };
  for (const project of projects) {
    const files = ['settings.local.json', 'settings.json'].map((name) => join(project, '.claude', name));
    const found = firstOf(files.filter((file) => file !== own));
    // In a project whose settings are invalid it deletes nothing.
    if (found !== undefined && found.days < shortest.days && (found.days === 0 || found.fault === undefined))
      shortest = { ...found, startedIn: project };
  }
  return shortest;
}

/** What the first of some files says that says something. */
function firstOf(files: readonly string[]): Retention | undefined {
  for (const file of files) {
    const found = retentionOf(file);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The settings of a machine, in the order in which they are read: a later one replaces what an earlier one says. */
function managedFiles(folder: string): readonly string[] {
  const parts = join(folder, 'managed-settings.d');
  return [join(folder, 'managed-settings.json'), ...namesIn(parts).map((name) => join(parts, name))];
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith('.json') && !name.startsWith('.'))
      .sort();
  } catch {
    // Nearly no machine has it.
    return [];
  }
}

/** What one file says; undefined where it is not there, or says nothing of it. */
function retentionOf(file: string): Retention | undefined {
  const unreadable = { days: usual, file, fault: 'the settings cannot be read' };
  let settings: unknown;
  try {
    // A pipe would be read without an end.
    if (!statSync(file).isFile()) return unreadable;
    settings = JSON.parse(readFileSync(file, 'utf8').replace(/^\u{feff}/u, ''));
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' || code === 'ENOTDIR' ? undefined : unreadable;
  }
  const days = isObject(settings) ? settings.cleanupPeriodDays : undefined;
  if (days === undefined) return undefined;
  if (days === 0)
    return { days, file, fault: 'cleanupPeriodDays is 0, with which earlier versions keep none' };
  if (typeof days === 'number' && Number.isInteger(days) && days > 0) return { days, file };
  return { days: usual, file, fault: 'cleanupPeriodDays is no number of days' };
}
