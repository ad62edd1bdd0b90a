import { append } from './append.ts';
import { bundle } from './bundle.ts';
import { chat } from './chat.ts';
import { cli } from './cli.ts';
import { deck } from './deck.ts';
import { delegate } from './delegate.ts';
import { disk } from './disk.ts';
import { erase } from './erase.ts';
import { fork } from './fork.ts';
import { homes } from './homes.ts';
import { imports } from './imports.ts';
import { mcp } from './mcp.ts';
import { memory } from './memory.ts';
import { open } from './open.ts';
import { peers } from './peers/peers.ts';
import { permissions } from './permissions.ts';
import { processes } from './processes.ts';
import { read } from './read.ts';
import { record } from './record.ts';
import { remotes } from './remotes.ts';
import { search } from './search.ts';
import { server } from './server.ts';
import { tools } from './tools.ts';
import type { Topic } from './topic.ts';
import { verify } from './verify.ts';
import { workers } from './workers.ts';

/** The topics, in the order in which they run. */
export const topics: Readonly<Record<string, Topic>> = {
  append,
  read,
  open,
  verify,
  disk,
  erase,
  search,
  bundle,
  imports,
  remotes,
  fork,
  memory,
  processes,
  record,
  chat,
  deck,
  delegate,
  permissions,
  tools,
  mcp,
  cli,
  homes,
  peers,
  server,
  workers,
};

/** Topics that take long, and run only when they are named, or quickly. */
const long: ReadonlySet<string> = new Set(['homes', 'peers', 'server', 'workers']);

/** The topics to run: those that are named, in their order. */
export function chosen(names: readonly string[], quick: boolean): readonly (readonly [string, Topic])[] {
  return Object.entries(topics).filter(([name]) =>
    names.length > 0 ? names.includes(name) : quick || !long.has(name),
  );
}
