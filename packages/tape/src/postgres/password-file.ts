import { readFile, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Where a connection leads, and for whom, as `pg` takes it from its address, variables and defaults. */
interface Login {
  readonly host: string;
  readonly port: number;
  readonly database?: string;
  readonly user?: string;
  password?: unknown;
}

/**
 * Lets a connection of `pg` that has no password take it from the file of all programs of PostgreSQL, when the server asks:
 * `pg` itself does so with a warning that it will not.
 */
export function usePasswordFile(client: object): void {
  const login = client as Login;
  if (typeof login.password !== 'string') login.password = async () => await filePassword(client);
}

/** The password that the file has for a connection of `pg`; undefined for one that has its own. */
export async function filePassword(client: object): Promise<string | undefined> {
  const login = client as Login;
  return typeof login.password === 'string' ? undefined : passwordIn(await fileOfUser(), login);
}

/** The text of `$PGPASSFILE`, or of `~/.pgpass`; nothing of one that others may read, as with other programs. */
async function fileOfUser(): Promise<string> {
  const file = process.env.PGPASSFILE ?? join(homedir(), '.pgpass');
  try {
    const { mode } = await stat(file);
    return (mode & 0o077) === 0 ? await readFile(file, 'utf8') : '';
  } catch {
    return '';
  }
}

/** The password in the first line `HOST:PORT:DATABASE:USER:PASSWORD` that fits; `*` fits all. Pure. */
function passwordIn(text: string, { host, port, database = '', user = '' }: Login): string | undefined {
  const names = [host.startsWith('/') ? [host, 'localhost'] : [host], [String(port)], [database], [user]];
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith('#')) continue;
    const fields = [...line.matchAll(/((?:\\.|[^:\\])*)(?::|$)/g)].map(([, field = '']) => field);
    const fits = names.every(
      (fitting, i) => fields[i] === '*' || fitting.includes(unescaped(fields[i] ?? '')),
    );
    const password = unescaped(fields[names.length] ?? '');
    if (fits && password !== '') return password;
  }
  return undefined;
}

function unescaped(field: string): string {
  return field.replace(/\\(.)/g, '$1');
}
