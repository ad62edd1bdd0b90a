import { homedir } from 'node:os';
import type { Context } from '../context.ts';
import { exit } from '../exit.ts';
import { keptName } from '../home.ts';
import { withJsonValue } from '../install/json-value.ts';
import { commandOnPath } from '../install/own-command.ts';
import { fileAt } from '../install/place.ts';
import { type Settled, settle } from '../install/settle.ts';
import { canAsk } from '../question.ts';
import { type Client, clients, type Entry, entryName } from './clients.ts';

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
  const place = fileAt(client.file({ cwd: io.cwd, user: io.env.HOME ?? homedir() }));
  const file = place.where;
  const entry = act === 'install' ? entryFor(client, { readOnly }, context) : undefined;
  const change = async (text: string) => await changed(text, client, entry);
  const config = entry === undefined ? null : await change('');
  const what = act === 'install' ? `Write this to ${file}` : `Remove tape from ${file}`;
  const question = `${client.title}:\n${config ?? ''}${what}?`;
  const state = await settle({ act, parts: [{ place, change }], question, yes }, context);
  await answer({
    json: { client: name, file, state, config },
    quiet: file,
    human: [
      // A question has shown it.
      ...(state === 'shown' && config !== null && !canAsk(context) ? [config.trimEnd()] : []),
      sentence(state, { name, act, file }),
    ].join('\n'),
  });
  return exit.done;
}

function sentence(
  state: Settled,
  { name, act, file }: { readonly name: string; readonly act: string; readonly file: string },
): string {
  if (state === 'installed') return `Installed in ${file} (undo with: tape mcp --uninstall ${name})`;
  if (state === 'removed') return `Removed from ${file} (undo with: tape mcp --install ${name})`;
  const again = `tape mcp --${act} ${name} --yes`;
  if (state === 'shown' && act === 'uninstall') return `Not removed. Remove it from ${file} with: ${again}`;
  if (state === 'shown') return `Not written. Write ${file} with: ${again}`;
  return act === 'install'
    ? `${file} has it already: nothing to do`
    : `${file} does not have it: nothing to do`;
}

/** How the client starts this command. */
function entryFor(
  client: Client,
  { readOnly }: { readonly readOnly: boolean },
  { io, options, home }: Context,
): Entry {
  const [command = 'tape', ...before] = commandOnPath(io.env);
  const named = options.home === undefined ? [] : ['--home', keptName(home, 'install the MCP server')];
  return {
    ...(client.typed === true && { type: 'stdio' }),
    command,
    args: [...before, 'mcp', ...(readOnly ? ['--read-only'] : []), ...named],
  };
}

async function changed(text: string, client: Client, entry: Entry | undefined): Promise<string> {
  const path = [client.field, entryName] as const;
  if (client.format === 'json') return withJsonValue(text, [...path], entry);
  const { withTomlEntry } = await import('./toml-entry.ts');
  return withTomlEntry(text, path, entry);
}
