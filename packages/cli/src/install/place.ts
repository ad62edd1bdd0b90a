import { isUtf8 } from 'node:buffer';
import { existsSync, lstatSync, mkdirSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { replaceFile } from '../config/replace-file.ts';
import { ConfigError } from '../errors/kinds.ts';

/** A text outside of the home, which belongs to another program. */
export interface Place {
  /** Where it is, for the user. */
  readonly where: string;
  /** The text; empty without one. */
  read(): string;
  /**
   * Replaces the text with what `change` makes of it at this moment.
   * @param act what the user wants, for the error: `install`
   */
  write(act: string, change: (text: string) => string | Promise<string>): Promise<void>;
}

/**
 * A file, which is replaced as a whole and keeps its mode; behind a link, the file that it leads to.
 * @param isOwn whether it is this command's alone: without a text there is no file
 * @throws ConfigError for a link to nothing
 */
export function fileAt(path: string, { isOwn = false }: { readonly isOwn?: boolean } = {}): Place {
  const where = realFile(path);
  return {
    where,
    read: () => textOf(where),
    write: async (act, change) => {
      mkdirSync(dirname(where), { recursive: true });
      await replaceFile(where, `${act} in '${where}'`, async () => {
        const text = await change(textOf(where));
        if (!isOwn || text !== '') return text;
        rmSync(where, { force: true });
        return undefined;
      });
    },
  };
}

/** The file behind a link, so that the file is replaced, and not the link. @throws ConfigError for a link to nothing */
function realFile(file: string): string {
  if (reading(file, () => lstatSync(file, { throwIfNoEntry: false })) === undefined) return file;
  if (!existsSync(file)) throw unusable(file, 'it is a link to nothing');
  return realpathSync(file);
}

/** @throws ConfigError for what is no regular file: a pipe would be read without an end; for bytes that would be lost */
function textOf(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat === undefined) return '';
  if (!stat.isFile()) throw unusable(file, 'it is not a regular file');
  const bytes = reading(file, () => readFileSync(file));
  if (!isUtf8(bytes)) throw unusable(file, 'it is no text in UTF-8');
  return bytes.toString('utf8');
}

/** @throws ConfigError for what this user may not read */
function reading<Found>(file: string, read: () => Found): Found {
  try {
    return read();
  } catch (error) {
    throw unusable(file, (error as Error).message);
  }
}

function unusable(file: string, why: string): ConfigError {
  return new ConfigError('CLI_BAD_CONFIG', `cannot use '${file}': ${why}`, { data: { config: file } });
}
