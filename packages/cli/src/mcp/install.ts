import { isUtf8 } from 'node:buffer';
import { existsSync, lstatSync, mkdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { replaceFile } from '../config/replace-file.ts';
import type { Context } from '../context.ts';
import { ConfigError } from '../errors/kinds.ts';
import { safe } from '../escape.ts';
import { exit } from '../exit.ts';
import { type Client, clients, type Entry, entryName } from './clients.ts';
import { CannotChange, withJsonEntry } from './json-entry.ts';

/** What is to become of the entry of a client. */
export interface Installation {
  readonly client: string;
  readonly act: 'install' | 'uninstall';
  readonly readOnly: boolean;
  /** Write it without a question. */
  readonly yes: boolean;
}

/** Shows the entry of a client, and writes or removes it when the user agrees. */
export async function install(
  { client: name, act, readOnly, yes }: Installation,
  context: Context,
): Promise<number> {
  const client = clients[name];
  if (client === undefined) throw new TypeError('the command line lets no other name pass');
  const { io, answer } = context;
  const file = realFile(client.file({ cwd: io.cwd, user: io.env.HOME ?? homedir() }));
  const entry = act === 'install' ? entryFor(client, { readOnly }, context) : undefined;
  const before = textOf(file);
  const after = await changed(before, { client, entry, file, act });
  const config = entry === undefined ? null : await changed('', { client, entry, file, act });
  const isSame = after === before;
  const isAgreed = !isSame && (yes || (await agrees({ client, file, act, config }, context)));
  if (isAgreed) await write(file, act, async () => await changed(textOf(file), { client, entry, file, act }));
  const state = isSame ? 'unchanged' : !isAgreed ? 'shown' : act === 'install' ? 'installed' : 'removed';
  await answer({
    json: { client: name, file, state, config },
    quiet: file,
    human: [
      ...(state === 'shown' && config !== null ? [config.trimEnd()] : []),
      sentence(state, { name, act, file }),
    ].join('\n'),
  });
  return exit.done;
}

function sentence(
  state: string,
  { name, act, file }: { readonly name: string; readonly act: string; readonly file: string },
): string {
  if (state === 'installed') return `Installed in ${file} (undo with: tape mcp --uninstall ${name})`;
  if (state === 'removed') return `Removed from ${file} (undo with: tape mcp --install ${name})`;
  if (state === 'shown') return `Not written. Write ${file} with: tape mcp --${act} ${name} --yes`;
  return act === 'install'
    ? `${file} has it already: nothing to do`
    : `${file} does not have it: nothing to do`;
}

/** How the client starts this command. */
function entryFor(
  client: Client,
  { readOnly }: { readonly readOnly: boolean },
  { io, options }: Context,
): Entry {
  const script = process.argv[1] ?? '';
  const words = isOnPath(script, io.env.PATH) ? ['tape'] : [process.execPath, realpathSync(script)];
  const [command = 'tape', ...before] = words;
  const home = options.home === undefined ? [] : ['--home', resolve(io.cwd, options.home)];
  return {
    ...(client.typed === true && { type: 'stdio' }),
    command,
    args: [...before, 'mcp', ...(readOnly ? ['--read-only'] : []), ...home],
  };
}

/** Whether `tape` on the path is this command. */
function isOnPath(script: string, path = ''): boolean {
  const found = path
    .split(delimiter)
    .map((dir) => join(dir, 'tape'))
    .find((file) => existsSync(file));
  return found !== undefined && existsSync(script) && realpathSync(found) === realpathSync(script);
}

/** The file behind a link, so that the file is replaced, and not the link. @throws ConfigError for a link to nothing */
function realFile(file: string): string {
  if (lstatSync(file, { throwIfNoEntry: false }) === undefined) return file;
  if (!existsSync(file)) throw unusable(file, 'it is a link to nothing');
  return realpathSync(file);
}

/** @throws ConfigError for what is no regular file: a pipe would be read without an end; for bytes that would be lost */
function textOf(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat === undefined) return '';
  if (!stat.isFile()) throw unusable(file, 'it is not a regular file');
  const bytes = readFileSync(file);
  if (!isUtf8(bytes)) throw unusable(file, 'it is no text in UTF-8');
  return bytes.toString('utf8');
}

function unusable(file: string, why: string): ConfigError {
  return new ConfigError('CLI_BAD_CONFIG', `cannot use '${file}': ${why}`, { data: { config: file } });
}

interface Change {
  readonly client: Client;
  readonly entry: Entry | undefined;
  readonly file: string;
  readonly act: string;
}

/** @throws ConfigError for a file that cannot be changed without a loss */
async function changed(text: string, { client, entry, file, act }: Change): Promise<string> {
  const path = [client.field, entryName] as const;
  try {
    if (client.format === 'json') return withJsonEntry(text, path, entry);
    const { withTomlEntry } = await import('./toml-entry.ts');
    return withTomlEntry(text, path, entry);
  } catch (error) {
    if (!(error instanceof CannotChange)) throw error;
    throw new ConfigError('CLI_BAD_CONFIG', `cannot ${act} in '${file}': ${error.message}`, {
      data: { config: file },
    });
  }
}

async function agrees(
  { client, file, act, config }: { client: Client; file: string; act: string; config: string | null },
  { io, options }: Context,
): Promise<boolean> {
  if (!io.stdinIsTerminal || !io.statusIsTerminal || options.json === true || options.jsonl === true)
    return false;
  const what = act === 'install' ? `Write this to ${file}` : `Remove tape from ${file}`;
  io.err(safe(`${client.title}:\n${config ?? ''}${what}? [y/N] `));
  for await (const bytes of io.stdin) return /^y(?:es)?\s*$/i.test(Buffer.from(bytes).toString('utf8'));
  return false;
}

async function write(file: string, act: string, change: () => Promise<string>): Promise<void> {
  mkdirSync(dirname(file), { recursive: true });
  await replaceFile(file, `${act} in '${file}'`, change);
}
