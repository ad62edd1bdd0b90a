import { statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { HomeStore } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { type Home, inHome } from '../home.ts';
import { type Checked, type LivePage, pageOf } from '../page/page.ts';
import { checkJson } from '../session/checked.ts';
import { checkAside, isShort } from './check-aside.ts';

/** How often it is looked whether the home is still the same, in milliseconds. */
const lookMs = 1_000;

/** The home while it is open. */
export interface Opened {
  readonly page: LivePage;
  /** The time that the home was opened for: places of the home count within one alone. */
  readonly time: number;
  /** Aborted when another home is in its place: streams end, and begin again. */
  readonly over: AbortSignal;
}

/**
 * The home that is shown, open for reading as verbs open it. It is opened again when its file was replaced or
 * upgraded: later requests are answered from the new one, or with the reason why it cannot be read.
 */
export class ShownHome implements Disposable {
  readonly #context: Context;
  readonly #version: string;
  #opened: (Opened & Held) | undefined;
  #opening: Promise<Opened & Held> | undefined;
  #time = 0;
  /** The last check in a process of its own: one is done at a time. */
  #aside: Promise<unknown> = Promise.resolve();
  readonly #end = new AbortController();
  readonly #looking: NodeJS.Timeout;

  constructor(context: Context, version: string) {
    this.#context = context;
    this.#version = version;
    // Who only follows asks nothing.
    this.#looking = setInterval(() => this.#look(), lookMs);
  }

  /** Has `act` read the home. It stays open until `act` has ended, whatever is in its place by then. */
  async read<T>(act: (opened: Opened) => Promise<T>): Promise<T> {
    this.#look();
    if (this.#opened === undefined) {
      this.#opening ??= this.#open();
      this.#opened = await this.#opening;
    }
    const opened = this.#opened;
    return await opened.during(async () => await act(opened));
  }

  /**
   * A text whose commands name the home. Always, also `~/.tape`: a user may run them in a directory with a home, or in a shell
   * whose variables name another.
   */
  inHome(text: string): string {
    const { home, isVerb } = this.#context;
    return inHome(text, { home: home.name, isVerb });
  }

  [Symbol.dispose](): void {
    clearInterval(this.#looking);
    this.#end.abort();
    this.#leave();
  }

  #look(): void {
    if (this.#opened !== undefined && !isCurrent(this.#opened)) this.#leave();
  }

  #leave(): void {
    this.#opened?.leave();
    this.#opened = undefined;
  }

  async #open(): Promise<Opened & Held> {
    const opened = Promise.withResolvers<Opened & Held>();
    const { home } = this.#context;
    const file = fileOf(home.db);
    this.#time += 1;
    const time = this.#time;
    this.#context
      .reading(async (store) => {
        const end = new AbortController();
        const left = Promise.withResolvers<void>();
        let acts = 0;
        const leaveWhenIdle = () => {
          if (end.signal.aborted && acts === 0) left.resolve();
        };
        opened.resolve({
          time,
          page: pageOf({
            ...{ ...this.#source(), store },
            check: async (session) => await this.#check(store, session),
          }),
          over: end.signal,
          isCurrent: () => fileOf(home.db) === file && !store.isUpgraded,
          during: async (act) => {
            acts += 1;
            try {
              return await act();
            } finally {
              acts -= 1;
              leaveWhenIdle();
            }
          },
          leave: () => {
            end.abort();
            leaveWhenIdle();
          },
        });
        await left.promise;
      })
      .catch(opened.reject);
    try {
      return await opened.promise;
    } finally {
      this.#opening = undefined;
    }
  }

  #source() {
    const { home, io } = this.#context;
    return {
      title: titleOf(home),
      version: this.#version,
      inHome: (line: string) => this.inHome(line),
      now: () => io.now(),
    };
  }

  async #check(opened: HomeStore, session: string | undefined): Promise<Checked> {
    const { home, reading } = this.#context;
    if (!isShort(opened, session)) {
      const what = { home: home.server?.given ?? home.name, session };
      const turn = this.#aside.then(async () => await checkAside(what, this.#end.signal));
      this.#aside = turn.catch(() => {});
      return await turn;
    }
    const { check } = await import('@tapedeck/runtime');
    // A connection of its own: a check reads all of the home, as of one moment.
    return await reading(async (store: HomeStore) => {
      const found = await check(store, { graph: home.graph, ...(session !== undefined && { session }) });
      return checkJson(found, { home: home.name }) as unknown as Checked;
    });
  }
}

function titleOf({ dir, name, server }: Home): string {
  if (server !== undefined) return name;
  return basename(dir) === '.tape' ? `${basename(dirname(dir))}/.tape` : basename(dir);
}

interface Held {
  isCurrent(): boolean;
  during<T>(act: () => Promise<T>): Promise<T>;
  leave(): void;
}

/** Whether a home is still in its place. One that can no longer be looked at is opened anew, which says why not. */
function isCurrent(opened: Held): boolean {
  try {
    return opened.isCurrent();
  } catch {
    return false;
  }
}

/** Which file is at a path; a text that another file there does not have. */
function fileOf(path: string | undefined): string {
  if (path === undefined) return '';
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? '' : `${stat.dev}.${stat.ino}`;
}
