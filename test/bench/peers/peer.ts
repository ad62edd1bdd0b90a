/** One message of a session: what each store keeps in its own form. */
export interface Text {
  readonly role: 'user' | 'assistant';
  readonly text: string;
}

/** Imports a package from where the peer is installed. */
export type Load = <Module>(name: string) => Promise<Module>;

/** Something that people keep sessions of agents in. */
export interface Peer {
  readonly name: string;
  /** The packages to install, with their exact versions; none if the workspace has what it needs. */
  readonly packages: Readonly<Record<string, string>>;
  /** The works that its library has no function for, with the reason. */
  readonly cannot?: Readonly<Partial<Record<Work, string>>>;
  /** Loads the packages. Returns a function that opens the store of a home, an existing directory. */
  load(load: Load): Promise<(home: string) => Store | Promise<Store>>;
}

/** What is measured. */
export type Work = 'append' | 'fork' | 'last' | 'all' | 'list';

/** The works, as a peer does them. A session is named by what the store calls it. */
export interface Store {
  /** Makes a session of these texts, as appends would leave it, in any way. Nothing measures it. */
  fill(texts: readonly Text[]): Promise<string>;
  /** Opens a session to append. Each call of the result resolves when the store acknowledges the text. */
  appender(session: string): Promise<(text: Text) => unknown>;
  /** Forks at the tip. */
  fork(session: string): Promise<string>;
  /** The last texts, in ascending order. */
  last(session: string, count: number): Promise<readonly string[]>;
  /** Shows each text, in ascending order. */
  all(session: string, see: (text: string) => void): Promise<void>;
  /** How many sessions a list of all has, with what the store lists of each. */
  list(): Promise<number>;
  close(): void | Promise<void>;
}
